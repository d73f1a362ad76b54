//! How long the tool waits for anything. Nothing here judges a figure: at a limit the run stops
//! with an error and cleans up.

use std::time::Duration;

/// From the start of a private daemon to its first healthy answer; over Docker it tests containment
/// with containers first.
pub(crate) const DAEMON_START: Duration = Duration::from_secs(120);

/// From SIGTERM to the daemon's exit; then it is killed.
pub(crate) const DAEMON_STOP: Duration = Duration::from_secs(30);

/// Until the private daemon has made the machines it keeps ready.
pub(crate) const POOL_FILL: Duration = Duration::from_secs(60);

/// One request that is not a stream.
pub(crate) const CALL: Duration = Duration::from_secs(120);

/// One upload, download or log stream.
pub(crate) const TRANSFER: Duration = Duration::from_secs(600);

/// Between two looks at something that is awaited.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// Idle life of the tool's sandboxes, so that a tool that was killed leaves none for ever.
pub(crate) const IDLE_TTL_MS: u64 = 3_600_000;

/// Longest kept piece of the daemon's log in an error.
pub(crate) const LOG_TAIL_LINES: usize = 20;

/// Longest line of a log stream; a longer one is an error of the server.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// Longest last line of an answer of lines, which says how it ended.
pub(crate) const LAST_LINE_BYTES: usize = 64 << 10;
