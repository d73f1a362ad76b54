//! Bounds of the orchestrator, and what happens at each.

use std::time::Duration;

/// Time for a post-mortem to be gathered; then the machine is destroyed with what there is.
pub(crate) const COLLECT_DEADLINE: Duration = Duration::from_secs(2);

/// Time for a pause or resume; then it counts as failed.
pub(crate) const CHANGE_DEADLINE: Duration = Duration::from_secs(10);

/// Time for a dead sandbox's row to be closed; then it is tried again.
pub(crate) const RECORD_DEADLINE: Duration = Duration::from_secs(15);

/// Time for a runner to say how busy it is; then the question counts as unanswered.
pub(crate) const OBSERVE_DEADLINE: Duration = Duration::from_secs(3);

/// A runner that has not said so by then may be as well as ever, and its engine away: that is asked,
/// too, and has to have answered by the second moment. Both lie before [`OBSERVE_DEADLINE`].
pub(crate) const ENGINE_DOUBT: Duration = Duration::from_millis(1500);
pub(crate) const ENGINE_VERDICT: Duration = Duration::from_millis(2500);

/// Unanswered questions in a row after which an expired sandbox in which nothing was last seen
/// running counts as lost.
pub(crate) const UNANSWERED_QUESTIONS: u32 = 3;

/// Silence after which an expired sandbox counts as lost although commands were last seen running
/// in it, or nobody has seen yet whether any do.
pub(crate) const BUSY_SILENCE: Duration = Duration::from_secs(600);

/// From the end of a use to the first look at what it left running.
pub(crate) const FIRST_LOOK: Duration = Duration::from_millis(250);

/// Looks at a sandbox that stays busy are at most this far apart.
pub(crate) const LAST_LOOK: Duration = Duration::from_secs(5);

/// A lease is written at most this often; a crash forgets at most this much activity.
pub(crate) const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// Waits between failed attempts to destroy a machine or to close its row.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(500);
pub(crate) const LAST_RETRY: Duration = Duration::from_secs(30);

/// Live events a subscriber may fall behind; then it is told that it lagged and asks again.
pub(crate) const LIVE_EVENTS: usize = 1024;

/// How long an event waits for others to be stored and told together with it.
pub(crate) const EVENTS_PAUSE: Duration = Duration::from_millis(5);

/// Events stored by one write; more wait for the next one.
pub(crate) const EVENTS_PER_WRITE: usize = 256;

/// Events kept in the store; older ones are forgotten.
pub(crate) const KEPT_EVENTS: u64 = 10_000;

/// Scripts of one shell that are remembered: more than may wait for it, so that one that has ended
/// is among them.
pub(crate) const SCRIPTS_PER_SHELL: usize = 128;

/// Shells of one sandbox whose scripts are remembered: more than it may have.
pub(crate) const SHELLS_REMEMBERED: usize = 64;

/// Commands named in a post-mortem, and how many of them have their output read.
pub(crate) const POST_MORTEM_COMMANDS: usize = 20;
pub(crate) const POST_MORTEM_OUTPUTS: usize = 3;

/// Output kept in a post-mortem; the tail of it.
pub(crate) const POST_MORTEM_OUTPUT_BYTES: usize = 16 << 10;

/// Of each command's arguments, how many are kept in a post-mortem and how much of each, and of
/// its directory and its ending's reason.
pub(crate) const POST_MORTEM_ARGUMENTS: usize = 16;
pub(crate) const POST_MORTEM_ARGUMENT_BYTES: usize = 1 << 10;

/// Frames read from the end of each command's journal for it.
pub(crate) const POST_MORTEM_FRAMES: u64 = 64;

/// How long a caller whose channel broke waits to learn whether the sandbox has died of it.
pub(crate) const DEATH_NOTICE: Duration = Duration::from_secs(1);

/// Between two looks for machines that were removed behind the daemon's back.
pub(crate) const LOSS_INTERVAL: Duration = Duration::from_secs(1);

/// Between two tries to watch a machine whose engine does not answer.
pub(crate) const WATCH_RETRY: Duration = Duration::from_secs(1);

/// How long a description waits for a busy sandbox's own word before it shows what was last seen.
pub(crate) const FRESH_LOOK: Duration = Duration::from_millis(500);

/// Connections to one published port at a time; one more is told so and closed.
pub(crate) const CONNECTIONS_PER_PORT: usize = 100;

/// Copied at once per direction of a port connection.
pub(crate) const TUNNEL_BUFFER_BYTES: usize = 32 << 10;

/// A port connection's peer that is silent this long is probed, and given up after some probes.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
pub(crate) const KEEPALIVE_PROBES: u32 = 4;

/// How long a refused port connection may take to show that it speaks HTTP, and then to hang up.
pub(crate) const REFUSAL_PATIENCE: Duration = Duration::from_millis(500);

/// After a failed accept (no descriptors left), the next try.
pub(crate) const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Bounds of the advice when to try again at the limit of sandboxes.
pub(crate) const FIRST_ADVICE: Duration = Duration::from_secs(1);
pub(crate) const LAST_ADVICE: Duration = Duration::from_secs(60);

/// Machines destroyed at the same time when they are found without an owner.
pub(crate) const CONCURRENT_DESTROYS: usize = 4;

/// Ready machines that all pools together may keep; a configuration that asks for more is refused.
pub const MAX_POOL: usize = 256;

/// How long a create waits for its turn in the engine; its own deadline begins with the turn. With
/// the usual one of 30 s it is less than clients wait for an answer, which is 200 s.
pub(crate) const TURN_PATIENCE: Duration = Duration::from_secs(150);

/// How long an engine may take to say whether it has a workspace where there are others; then it
/// counts as not answering.
pub(crate) const OTHERS_PATIENCE: Duration = Duration::from_secs(2);

/// How long a ready machine may take to be given to its caller; then a new one is made instead.
pub(crate) const CLAIM_PATIENCE: Duration = Duration::from_secs(1);

/// Before a machine is made in the place of one that was taken.
pub(crate) const REFILL_PAUSE: Duration = Duration::from_millis(10);

/// How long the making of a ready machine stands back for callers' creates.
pub(crate) const REFILL_PATIENCE: Duration = Duration::from_secs(1);

/// Waits between failed attempts to make a ready machine.
pub(crate) const FIRST_REFILL_RETRY: Duration = Duration::from_millis(500);
pub(crate) const LAST_REFILL_RETRY: Duration = Duration::from_secs(30);

/// Time for the attacks of one test of containment; then they are killed, and nothing was tested.
pub(crate) const BATTERY_DEADLINE: Duration = Duration::from_secs(10);

/// Beyond that, for the runner to say so; then it counts as mute, and nothing was tested either.
pub(crate) const BATTERY_MARGIN: Duration = Duration::from_secs(5);

/// Output of those attacks; more is refused as not theirs.
pub(crate) const BATTERY_OUTPUT_BYTES: usize = 256 << 10;

/// Waits between attempts to test containment when it could not be tested.
pub(crate) const FIRST_RETEST: Duration = Duration::from_secs(1);
pub(crate) const LAST_RETEST: Duration = Duration::from_secs(60);

/// Between looks for an image where there was none to test it with.
pub(crate) const NO_IMAGE_RETEST: Duration = Duration::from_secs(2);

/// Images that a self-test attacks; more are not tested, and the log says how many.
pub(crate) const TESTED_IMAGES: usize = 64;

/// Connection attempts to a runner, one after the other, before whoever reads from it gives up.
pub(crate) const MAX_RECONNECTS: u32 = 8;

/// The pause before the first attempt; it doubles each time.
pub(crate) const RECONNECT_PAUSE: Duration = Duration::from_millis(20);
