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

/// Entries, depth, time and bytes of one walk, whatever it asks for; at the limit its end says so.
pub(crate) const MAX_TREE_NODES: u64 = 1_000_000;
pub(crate) const MAX_TREE_DEPTH: u64 = 256;
pub(crate) const MAX_TREE_TIME: Duration = Duration::from_secs(30);
pub(crate) const MAX_TREE_BYTES: u64 = 512 << 20;

/// The same without being asked for.
pub(crate) const DEFAULT_TREE_NODES: u64 = 10_000;
pub(crate) const DEFAULT_TREE_DEPTH: u64 = 20;
pub(crate) const DEFAULT_TREE_TIME: Duration = Duration::from_secs(5);

/// Entries of a walk between two looks at the clock.
pub(crate) const TREE_NODES_PER_LOOK: u64 = 256;

/// Directories named that a walk or an archive could not read; further ones are only counted.
pub(crate) const MAX_NAMED_PATHS: usize = 20;

/// The longest text of such a path; longer ones are cut.
pub(crate) const MAX_NAMED_PATH_CHARS: usize = 1_000;

/// Entries, depth, bytes and time of one archive. Beyond them one that is made breaks off, or leaves
/// out what is deeper and the files that do not fit and says so, and one that is unpacked ends with
/// `limit_reached`.
pub(crate) const MAX_ARCHIVE_ENTRIES: u64 = 1_000_000;
pub(crate) const MAX_ARCHIVE_DEPTH: usize = 256;
pub(crate) const MAX_ARCHIVE_BYTES: u64 = 64 << 30;
pub(crate) const MAX_ARCHIVE_TIME: Duration = Duration::from_secs(3600);

/// Directories whose modes are set when all is unpacked, as paths; further ones get theirs at once
/// and stay open to their owner.
pub(crate) const MAX_ARCHIVE_MODES_BYTES: usize = 16 << 20;

/// What may follow an archive's end; the rest is not read.
pub(crate) const MAX_ARCHIVE_TRAILER_BYTES: u64 = 16 << 20;

/// Bytes of a file read or written at once on the way to or from an archive.
pub(crate) const ARCHIVE_CHUNK_BYTES: usize = 128 << 10;

/// Pieces of an upload on their way to the thread that unpacks it; at the limit the client waits.
pub(crate) const UPLOAD_AHEAD: usize = 4;

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

/// How long such work waits for a reader that takes nothing, or for a client that sends nothing; then
/// it ends, and whoever goes on is told that something is missing.
pub(crate) const STANDSTILL: Duration = Duration::from_secs(60);

/// Threads of one search; fewer where there are fewer processors, or none is to be had.
pub(crate) const MAX_SEARCH_THREADS: usize = 8;

/// Matches of one search: what a request gets that does not say, and the most it may ask for. Then
/// it is cut with the reason `limit`.
pub(crate) const SEARCH_MATCHES: u64 = 10_000;
pub(crate) const MAX_SEARCH_MATCHES: u64 = 1_000_000;

/// The same of its time; the reason is `time`.
pub(crate) const SEARCH_TIME: Duration = Duration::from_secs(30);
pub(crate) const MAX_SEARCH_TIME: Duration = Duration::from_secs(300);

/// Entries that one search looks at; then it is cut with the reason `nodes`.
pub(crate) const MAX_SEARCH_NODES: u64 = 2_000_000;

/// Bytes of file content that one search reads; then it is cut with the reason `bytes`.
pub(crate) const MAX_SEARCH_BYTES: u64 = 64 << 30;

/// Names of one directory, and the paths of directories that wait for their turn; a search that
/// needs more is cut with the reason `nodes`.
pub(crate) const MAX_SEARCH_LISTING_BYTES: usize = 32 << 20;
pub(crate) const MAX_SEARCH_QUEUE_BYTES: usize = 16 << 20;

/// Directories held open on the way down by a search in order; others are opened again.
pub(crate) const SEARCH_HELD_DIRECTORIES: usize = 32;

/// Longest pattern, and longest and most globs and types; more are refused as invalid.
pub(crate) const MAX_PATTERN_BYTES: usize = 64 << 10;
pub(crate) const MAX_GLOB_BYTES: usize = 4 << 10;
pub(crate) const MAX_GLOBS: usize = 100;

/// A compiled pattern, refused as invalid above it, and the states one thread keeps of it, which
/// are forgotten above it.
pub(crate) const MAX_REGEX_BYTES: usize = 8 << 20;
pub(crate) const MAX_REGEX_STATES_BYTES: usize = 2 << 20;
pub(crate) const MAX_REGEX_NESTING: u32 = 100;

/// Larger files are skipped and counted; a request may ask for less.
pub(crate) const MAX_SEARCHED_FILE_BYTES: u64 = 4 << 30;

/// Files up to this size are read at once; it is as much as the searcher looks through for a NUL
/// before its first match.
pub(crate) const SEARCH_WHOLE_FILE_BYTES: usize = 64 << 10;

/// Longest line that is searched, and largest file where matches go over lines; longer ones count as
/// too large.
pub(crate) const MAX_SEARCHED_LINE_BYTES: usize = 8 << 20;

/// Text of one found line: what a request gets that does not say, and the most it may ask for.
/// Lines are cut there.
pub(crate) const FOUND_LINE_BYTES: u64 = 2 << 10;
pub(crate) const MAX_FOUND_LINE_BYTES: u64 = 64 << 10;

/// Matches told of one line; then it is said that there are more.
pub(crate) const MAX_LINE_RANGES: usize = 1_000;

/// Lines of context on each side; more are refused as invalid.
pub(crate) const MAX_CONTEXT_LINES: u64 = 1_000;

/// Findings of one file that wait for its end; above it the others wait for this file's end.
pub(crate) const MAX_WAITING_FINDINGS_BYTES: usize = 256 << 10;

/// Largest ignore-file, and all that hold at once in one search; others are not heeded.
pub(crate) const MAX_IGNORE_FILE_BYTES: usize = 128 << 10;
pub(crate) const MAX_IGNORE_BYTES: usize = 512 << 10;

/// Directories with such files, or with a `.git`, whose rules hold at once in one search; those of
/// others are not heeded. Each takes a few hundred bytes, whatever the files say.
pub(crate) const MAX_IGNORE_NODES: usize = 8_192;

/// Files searched, and entries looked at, between two looks at the clock and at the reader.
pub(crate) const FILES_PER_LOOK: u32 = 32;

/// Requests about Git that are worked on at once, and that wait for it; one more is refused with
/// `limit_reached`.
pub(crate) const MAX_GIT_AT_ONCE: usize = 4;
pub(crate) const MAX_GIT_WAITING: usize = 64;

/// How long such a request may take, its wait included; then everything it started is killed and it
/// is refused with `timed_out`.
pub(crate) const GIT_TIMEOUT: Duration = Duration::from_secs(30);

/// What Git may say of a status, of the settings of a repository, and beside any answer; above it
/// Git is ended and the answer marked as truncated, or for settings the request refused.
pub(crate) const MAX_GIT_STATUS_BYTES: usize = 4 << 20;
pub(crate) const MAX_GIT_SETTINGS_BYTES: usize = 1 << 20;
pub(crate) const MAX_GIT_COMPLAINT_BYTES: usize = 64 << 10;

/// Entries of a status and branches of a list, and bytes of their names; more are marked as
/// truncated.
pub(crate) const MAX_GIT_ENTRIES: usize = 10_000;
pub(crate) const MAX_GIT_TEXT_BYTES: usize = 2 << 20;

/// Text of a difference, of a file at a revision, and of a log; what follows is cut and marked. Even
/// if every byte has to be escaped, the JSON stays below what the daemon reads.
pub(crate) const MAX_GIT_CONTENT_BYTES: usize = 2 << 20;

/// Commits of one log, and how many without being asked for a number.
pub(crate) const MAX_GIT_COMMITS: u64 = 500;
pub(crate) const GIT_COMMITS: u64 = 50;

/// The longest name of a revision or branch, of an author, and the longest message of a commit.
pub(crate) const MAX_GIT_REVISION_BYTES: usize = 250;
pub(crate) const MAX_GIT_PERSON_BYTES: usize = 500;
pub(crate) const MAX_GIT_MESSAGE_BYTES: usize = 64 << 10;

/// Filters that a repository's settings may name; one with more is not read.
pub(crate) const MAX_GIT_FILTERS: usize = 64;

/// Trees that are watched at once, and directories of one and of all of them. A watch beyond it is
/// refused with `limit_reached`; one that grows beyond it is reset and ended.
pub(crate) const MAX_WATCHES: usize = 64;
pub(crate) const MAX_WATCHED_DIRECTORIES: usize = 10_000;
pub(crate) const MAX_ALL_WATCHED_DIRECTORIES: usize = 20_000;

/// Changes of one tree that are kept for readers; whoever is further behind is told to list again.
pub(crate) const MAX_WATCH_EVENTS: usize = 8_192;
pub(crate) const MAX_WATCH_EVENT_BYTES: usize = 2 << 20;

/// How long a tree is watched on after its last reader has left.
pub(crate) const WATCH_GRACE: Duration = Duration::from_secs(60);

/// Changes that come within this time of the first travel together, and those of one file become
/// one; with so many of them, or while new directories are listed for so long, earlier or later.
pub(crate) const WATCH_SETTLE: Duration = Duration::from_millis(50);
pub(crate) const WATCH_SETTLE_LONGEST: Duration = Duration::from_millis(500);
pub(crate) const MAX_WATCH_PENDING: usize = 4_096;

/// Directories listed and entries read of them, for all watches together, and the kernel's words
/// taken, between two turns of other work.
pub(crate) const WATCH_SCANS_PER_TURN: usize = 32;
pub(crate) const WATCH_ENTRIES_PER_TURN: usize = 1_024;
pub(crate) const WATCH_WORDS_PER_TURN: usize = 2_048;

/// Names of directories that a watch may leave out.
pub(crate) const MAX_WATCH_EXCLUDED: usize = 64;

/// The runner's own log, where it is a file: above it the older half is cut off. A line is cut.
pub(crate) const MAX_LOG_BYTES: u64 = 256 << 10;
pub(crate) const MAX_LOG_LINE_BYTES: usize = 1_000;
