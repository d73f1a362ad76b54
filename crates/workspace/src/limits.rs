//! Every bound of this crate, and what happens at it.

use std::time::Duration;

/// Tries of a call that may be repeated, after the first; then it fails with the last error.
pub(crate) const REMOTE_RETRIES: u32 = 3;

/// Between two tries: doubles from the first to the longest, less up to half of it by chance.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Failures in a row that open the breaker; nothing is tried then for the recovery time.
pub(crate) const BREAKER_FAILURES: u32 = 5;
pub(crate) const BREAKER_RECOVERY: Duration = Duration::from_secs(30);

/// Failures closer together count as one: a connection that breaks fails all its requests at once,
/// and while a service is started again many callers find it missing.
pub(crate) const FAILURE_SPACING: Duration = Duration::from_secs(1);

/// Largest body of a request to another machine; a longer one is refused before it leaves, and by
/// the service.
pub(crate) const MAX_BODY_BYTES: usize = 10 << 20;

/// How long the answer to a request may take to begin, and how much longer for each such piece of
/// its body.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const PATIENT_BYTES_PER_SECOND: usize = 64 << 10;

/// How long a connection and its TLS may take.
pub(crate) const DIAL_PATIENCE: Duration = Duration::from_secs(5);

/// The kernel asks a silent peer after this time whether it is there.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(30);

/// A secret with fewer characters is refused.
pub(crate) const MIN_SECRET_CHARS: usize = 32;

/// Secrets of one file; more are a mistake.
pub(crate) const MAX_SECRETS: usize = 16;

/// Largest file of secrets that is read.
pub(crate) const MAX_SECRET_FILE_BYTES: u64 = 64 << 10;

/// The secrets' file is looked at for a change so often, at most.
pub(crate) const KEYS_LOOK: Duration = Duration::from_secs(1);

/// How far apart the clocks of the two machines may be.
pub(crate) const MAX_SKEW_SECONDS: u64 = 300;

/// Used signatures remembered. Above it those of the oldest second are forgotten, and everything
/// that was signed in that second or before is refused from then on.
pub(crate) const MAX_REPLAYS: usize = 500_000;

/// How long a started runner may take to answer; then the start has failed.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const START_POLL: Duration = Duration::from_millis(5);

/// A place that is locked for longer belongs to somebody else.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_millis(400);

/// How long a killed process may take to be gone.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(5);
pub(crate) const KILL_POLL: Duration = Duration::from_millis(5);

/// Searches for what a runner started before it is killed itself.
pub(crate) const KILL_ROUNDS: usize = 50;

/// The runner's log is cut to this size at each start; the end is kept.
pub(crate) const MAX_LOG_BYTES: u64 = 256 << 10;

/// Connections to the service at once; one more is closed.
pub(crate) const MAX_CONNECTIONS: usize = 1_024;

/// Requests of one connection at once; its other end waits at the limit.
pub(crate) const MAX_STREAMS: u32 = 4_096;

/// Bodies that the service holds until their hash is known, all together; the next one waits.
pub(crate) const MAX_GATHERED_BYTES: usize = 128 << 20;

/// How long a request's body may take to arrive.
pub(crate) const BODY_PATIENCE: Duration = Duration::from_secs(120);

/// Largest head of a request.
pub(crate) const MAX_HEAD_BYTES: u32 = 32 << 10;

/// A connection without a request is closed after this time; one that has not shown a signature
/// after the shorter one.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(600);
pub(crate) const STRANGER_LIMIT: Duration = Duration::from_secs(10);

/// A peer that vanished is noticed by a ping, sent so often and answered within this.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(20);
pub(crate) const PING_PATIENCE: Duration = Duration::from_secs(20);

/// How long running requests may take to end when the service stops.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Pause after a failed accept, so that a full descriptor table is not a busy loop.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Unread bytes of one stream, and of all of a connection, before the other side waits.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1 << 20;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;
pub(crate) const MAX_FRAME_BYTES: u32 = 256 << 10;
pub(crate) const MAX_SEND_BYTES: usize = 1 << 20;
