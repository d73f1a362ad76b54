//! Every bound of the runner, and what happens when it is reached.

use std::time::Duration;

use sandbank_protocol::PtySize;

/// Freed memory at the end of the heap that is not given back to the kernel.
pub(crate) const KEPT_FREE_BYTES: i32 = 2 << 20;

/// Largest JSON request body; a longer one is refused as invalid.
pub(crate) const MAX_JSON_BYTES: usize = 4 << 20;

/// Commands that run at once; one more is refused with `limit_reached`.
pub(crate) const MAX_RUNNING_COMMANDS: usize = 1_000;

/// Commands remembered, running and ended; above it the one that ended first is forgotten.
pub(crate) const MAX_COMMANDS: usize = 10_000;

/// Arguments and environments of running commands; a start beyond it is refused with
/// `limit_reached`.
pub(crate) const MAX_RUNNING_SPEC_BYTES: usize = 16 << 20;

/// The same of ended commands; above it the one that ended first is forgotten. Several times the
/// largest spec, so that what has just ended stays.
pub(crate) const MAX_ENDED_SPEC_BYTES: usize = 16 << 20;
const _: () = assert!(MAX_ENDED_SPEC_BYTES >= 4 * MAX_JSON_BYTES);

/// Argument bytes shown per command in a list; longer ones are cut there, never in a status.
pub(crate) const MAX_LISTED_ARGV_BYTES: usize = 512;

/// Bytes taken from a pipe at once, and so the largest output frame but for a held-back character.
pub(crate) const READ_BYTES: usize = 128 << 10;

/// Reads of a stream that always has something, before other work gets a turn.
pub(crate) const READS_PER_TURN: usize = 16;

/// Between two looks at a terminal that was closed and is open again.
pub(crate) const REOPENED_POLL: Duration = Duration::from_millis(5);

/// Asked of the kernel for busy output pipes; where it refuses, the default size stays.
pub(crate) const PIPE_BYTES: usize = 512 << 10;

/// What a kept frame costs beside its bytes, so that many tiny frames stay within the budget.
pub(crate) const FRAME_OVERHEAD_BYTES: u64 = 128;

/// Sizes of dropped frames remembered per journal. A reader that resumes further back is told
/// the exact number of dropped frames, and an upper bound of their bytes.
pub(crate) const MAX_DROPPED_SIZES: usize = 4_096;

/// Read buffers kept for reuse; further ones are freed.
pub(crate) const MAX_SPARE_BUFFERS: usize = 4;

/// Chunks of output on their way to one reader; at the limit its pump waits.
pub(crate) const READER_CHUNKS: usize = 2;

/// Small frames are joined up to this size before they are sent.
pub(crate) const MAX_JOINED_BYTES: usize = 32 << 10;

/// How long a command waits for a reader that stopped taking output before frames are dropped.
/// Waited once; then not again before that reader has caught up.
pub(crate) const READER_PATIENCE: Duration = Duration::from_secs(1);

/// The same for the first reader, which cannot come before the start of the command is answered.
pub(crate) const FIRST_READER_PATIENCE: Duration = Duration::from_millis(250);

/// How long the answer to a start waits for the command's ending, whatever the request says.
pub(crate) const MAX_START_WAIT: Duration = Duration::from_secs(10);

/// Silence after which an output stream carries a heartbeat.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Silence after the end of a process that ends the wait for what it left in the background.
pub(crate) const DRAIN_SILENCE: Duration = Duration::from_millis(50);

/// The longest such wait when what it left behind is never silent.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// Between SIGTERM and SIGKILL at a timeout.
pub(crate) const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long killed processes may take to disappear before the ending is announced anyway.
pub(crate) const KILL_DEADLINE: Duration = Duration::from_secs(5);

/// Between two looks at what was killed.
pub(crate) const KILL_POLL: Duration = Duration::from_millis(2);

/// Searches for processes that have yet to be stopped before they are killed; whoever waits for
/// their disappearance begins again.
pub(crate) const STOPPING_ROUNDS: usize = 20;

/// Rounds of plain kills before what a script left behind is stopped first.
pub(crate) const PLAIN_KILLS: usize = 5;

/// How long a process killed for memory may take to die. A kill that was seen longer ago explains
/// no death.
pub(crate) const OOM_DEATH_LIMIT: Duration = Duration::from_secs(2);

/// The longest text that names who asked for a signal; longer ones are cut.
pub(crate) const MAX_BY_CHARS: usize = 200;

/// Processes reaped before other work gets a turn.
pub(crate) const REAPS_PER_TURN: usize = 256;

/// Streams of one connection; hyper makes the peer wait at the limit.
pub(crate) const MAX_STREAMS: u32 = 10_000;

/// Unread request bytes per stream.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// The same for all streams of a connection. So large that writers whose commands do not read
/// never hold up the other requests.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

/// Largest HTTP/2 frame accepted; fewer, larger frames are what makes the channel fast.
pub(crate) const MAX_FRAME_BYTES: u32 = 256 << 10;

/// Response bytes buffered per stream.
pub(crate) const MAX_SEND_BYTES: usize = 512 << 10;

/// Pause after a failed accept, so that a full descriptor table is not a busy loop.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Between two looks at a stdin that nobody holds the other end of.
pub(crate) const STDIN_PAUSE: Duration = Duration::from_millis(100);

/// How long the kernel may take to answer about the network; then the runner does not start.
pub(crate) const NETLINK_PATIENCE: Duration = Duration::from_secs(5);

/// Largest answer of the kernel about the network; it sends less at once.
pub(crate) const NETLINK_READ_BYTES: usize = 64 << 10;

/// How often routes are read that change meanwhile; then the runner does not start.
pub(crate) const NETLINK_ATTEMPTS: usize = 10;

/// Stack of a child between clone and exec; it runs a few system calls only.
pub(crate) const CHILD_STACK_BYTES: usize = 128 << 10;

/// Bytes of a file copied between two turns of other work, and the largest piece sent at once.
pub(crate) const FILE_CHUNK_BYTES: usize = 256 << 10;

/// Entries of one listing; above it the listing is marked as truncated.
pub(crate) const MAX_LIST_ENTRIES: usize = 10_000;

/// Bytes of names and link targets in one listing, which keeps its JSON below what the daemon
/// reads even if every byte has to be escaped; above it the listing is marked as truncated.
pub(crate) const MAX_LIST_TEXT_BYTES: usize = 2 << 20;

/// Entries described, and steps of a removal done, between two turns of other work.
pub(crate) const LIST_ENTRIES_PER_TURN: usize = 256;
pub(crate) const REMOVAL_STEPS_PER_TURN: u32 = 16;

/// Files of one `write-many`; one more refuses them all with `limit_reached`.
pub(crate) const MAX_BATCH_FILES: u64 = 10_000;

/// How long a port may take to accept a tunnel, per address; then it counts as closed.
pub(crate) const TUNNEL_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Copy buffer per direction of a tunnel; at the limit the faster side waits.
pub(crate) const TUNNEL_BUFFER_BYTES: usize = 32 << 10;

/// Output kept by `--client` for an exec answer; what follows is read and marked as truncated.
pub(crate) const FRONT_OUTPUT_BYTES: usize = 1 << 20;

/// Bytes of a read answer of `--client` without `max_bytes`; a longer file is marked truncated.
pub(crate) const FRONT_READ_BYTES: u64 = 16 << 20;

/// Shells of one sandbox, and scripts that wait for one of them; one more is refused.
pub(crate) const MAX_SHELLS: usize = 32;
pub(crate) const MAX_SHELL_QUEUE: usize = 100;

/// A shell's exported variables; more are not given to the shell that follows it.
pub(crate) const MAX_SHELL_REPORT_BYTES: usize = 1 << 20;

/// What jobs say while no script runs; the oldest is dropped.
pub(crate) const MAX_IDLE_OUTPUT_BYTES: usize = 64 << 10;

/// How long a new shell may take to take over what the one before it exported.
pub(crate) const SHELL_START_DEADLINE: Duration = Duration::from_secs(10);

/// A script whose shell dies before it takes it is given to the next, so often.
pub(crate) const MAX_SHELL_ATTEMPTS: usize = 3;

/// How long nobody listens to what a shell has exported, which it says line by line.
pub(crate) const SHELL_EXPORTS_PAUSE: Duration = Duration::from_millis(20);

/// How long a shell may be silent before it is looked whether it still evaluates its script, and the
/// longest pause between two looks.
pub(crate) const SHELL_PROBE_FIRST: Duration = Duration::from_millis(10);
pub(crate) const SHELL_PROBE_LONGEST: Duration = Duration::from_secs(2);

/// When a signal is sent again that found only the shell.
pub(crate) const SIGNAL_FOLLOW_UPS: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(400),
];

/// How long a terminal may take to pass on what was written to it.
pub(crate) const SHELL_MARK_DEADLINE: Duration = Duration::from_secs(2);

/// Of a shell's terminal while no script asks for another size.
pub(crate) const SHELL_TERMINAL: PtySize = PtySize { rows: 24, cols: 80 };

/// Writers of one command's input that are remembered; the one that was silent for longest is
/// forgotten, and refused with `conflict` if it goes on.
pub(crate) const MAX_WRITERS: usize = 256;

/// Places of all screens that are modelled, of the one that shows and of the other; a start or a
/// resize beyond it is refused with `limit_reached`. A place takes 24 bytes once it was written to.
pub(crate) const MAX_SCREEN_CELLS: usize = 2_000_000;

/// Screens of ended commands that are kept; above it the one that ended first is forgotten.
pub(crate) const MAX_ENDED_SCREENS: usize = 16;

/// Walks, searches and archives that go on at once, each on threads of its own; one more is refused
/// with `limit_reached`.
pub(crate) const MAX_OFFLOADED: usize = 8;

/// Stack of such a thread. Nothing there goes down a tree by recursion.
pub(crate) const OFFLOAD_STACK_BYTES: usize = 512 << 10;

/// Findings are gathered up to this size, or for so long, before they are sent.
pub(crate) const FINDINGS_BYTES: usize = 32 << 10;
pub(crate) const FINDINGS_PATIENCE: Duration = Duration::from_millis(10);

/// Such pieces on their way to the reader; at the limit the work waits.
pub(crate) const FINDINGS_AHEAD: usize = 4;
