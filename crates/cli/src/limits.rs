//! Every limit of the command line, and what happens at it.

use std::time::Duration;

/// A server that does not accept a connection within this is reported as unreachable.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Kept connections are dropped before the server's own idle limit does it under a request.
pub(crate) const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A plain request that takes longer is reported as unanswered.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Creating or removing a sandbox may include queueing and waiting for an engine: 150 s for a turn
/// and then 30 s, and the server's own answer says which it was.
pub(crate) const LIFECYCLE_TIMEOUT: Duration = Duration::from_secs(200);

/// How long a probe for a running server may take before `run` starts its own.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_millis(800);

/// A server that takes longer to say how it is counts as gone.
pub(crate) const HEALTH_TIMEOUT: Duration = Duration::from_secs(4);

/// A server that has begun to start is waited for this long, looking this often.
pub(crate) const STARTING_LIMIT: Duration = Duration::from_secs(10);
pub(crate) const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// A data directory that is locked for longer than a look takes belongs to another daemon.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_millis(200);

/// A stream that broke is resumed for this long; then the command fails as unreachable.
pub(crate) const RECONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Pause between two tries to reconnect: doubles from the first to the last.
pub(crate) const RECONNECT_FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const RECONNECT_LAST_PAUSE: Duration = Duration::from_secs(2);

/// A log line longer than this is a server that does not keep to the protocol.
pub(crate) const MAX_LOG_LINE_BYTES: usize = 4 << 20;

/// The most that one piece of standard input carries; longer input is several pieces.
pub(crate) const STDIN_PIECE_BYTES: usize = 128 << 10;

/// Files of a directory that are on their way at the same time.
pub(crate) const PARALLEL_COPIES: usize = 8;

/// Links that one `ln` script in the sandbox makes; more links are several scripts.
pub(crate) const LINKS_PER_COMMAND: usize = 100;

/// Ports that the server lets one sandbox publish; a fifth `--port` is refused.
pub(crate) const MAX_PORTS: usize = 4;

/// Levels of directories that `cp` follows; a deeper tree is refused as a whole.
pub(crate) const MAX_COPY_DEPTH: usize = 200;

/// When we are told to leave, the server gets this long to kill the command; then we go anyway.
pub(crate) const LEAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Between two looks at what the daemon's allocator holds without need.
pub(crate) const MEMORY_INTERVAL: Duration = Duration::from_secs(10);

/// An engine beside the default one that takes longer to start is served without, until it comes.
pub(crate) const OTHER_ENGINE_PATIENCE: Duration = Duration::from_secs(5);

/// A workspace service that takes longer to greet counts as away, and is started without.
pub(crate) const SERVICE_PATIENCE: Duration = Duration::from_secs(5);

/// How long it is until an engine that could not be started is tried again; longer each time.
pub(crate) const FIRST_ENGINE_RETRY: Duration = Duration::from_secs(1);
pub(crate) const LAST_ENGINE_RETRY: Duration = Duration::from_secs(30);

/// A longer line of an MCP host ends the program.
pub(crate) const MAX_MCP_LINE_BYTES: u64 = 8 << 20;

/// How long a server that is away is waited for before an MCP host is told.
pub(crate) const MCP_PATIENCE: Duration = Duration::from_secs(10);

/// How long answers that are on their way are waited for once an MCP host has closed our input.
pub(crate) const MCP_LAST_ANSWERS: Duration = Duration::from_secs(5);
