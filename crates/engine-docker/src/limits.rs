//! Bounds of the Docker engine, each with what happens when it is reached.

use std::time::Duration;

/// How long a connection to the engine may take; then `Unavailable`.
pub(crate) const DIAL_DEADLINE: Duration = Duration::from_secs(10);

/// Connections by ssh that wait for their first answer; further ones wait for their turn. Servers of
/// ssh drop newcomers while more than these have not proved who they are.
pub(crate) const SSH_DIALS: usize = 4;

/// Of ssh's own complaint, and how long it is waited for once the connection has ended: a process
/// that ssh left behind may keep its error output open.
pub(crate) const SSH_COMPLAINT_BYTES: usize = 1024;
pub(crate) const SSH_COMPLAINT_DEADLINE: Duration = Duration::from_millis(500);

/// How long the engine may take to begin its answer; then `Unavailable`.
pub(crate) const API_DEADLINE: Duration = Duration::from_secs(60);

/// How long the engine may neither take a piece of an image nor say a word about it; then the import
/// ends with `Unavailable`. It is silent while it unpacks a layer that it has whole.
pub(crate) const IMPORT_STALL: Duration = Duration::from_secs(300);

/// No import takes longer, however slowly it moves.
pub(crate) const IMPORT_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Of an error's body; the rest is not read.
pub(crate) const ERROR_BODY_BYTES: usize = 64 << 10;

/// How long a runner may take from its container's start to its first word; then the create fails.
pub(crate) const RUNNER_DEADLINE: Duration = Duration::from_secs(20);

/// How long `connect` waits for a runner's answer before it fails.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// The stream that a create opened serves the first `connect` for this long.
pub(crate) const READY_STREAM_FRESH_FOR: Duration = Duration::from_secs(30);

/// How long Docker may take to pass on what was written to a link that ends; then it is closed.
pub(crate) const LINK_END_DEADLINE: Duration = Duration::from_secs(5);

/// Largest frame of a container's output; a larger one ends the stream.
pub(crate) const MAX_FRAME_BYTES: usize = 16 << 20;

/// Of one line that a runner writes to its error output; the rest of the line is dropped.
pub(crate) const STDERR_LINE_BYTES: usize = 1024;

/// Lines of one connection that are logged; further ones are not.
pub(crate) const STDERR_LINES: usize = 100;

/// Longest event that is read; a longer one ends the feed, which is opened again.
pub(crate) const EVENT_BYTES: usize = 1 << 20;

/// How long its events may say nothing before it is asked whether it is there, and has to answer.
pub(crate) const EVENTS_QUIET: Duration = Duration::from_secs(10);

/// Pauses between attempts to hear the engine's events again.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(100);
pub(crate) const LAST_RETRY: Duration = Duration::from_secs(1);

/// How long `destroy` waits for a container or a volume to go before it fails.
pub(crate) const REMOVAL_DEADLINE: Duration = Duration::from_secs(20);

/// Pause between two looks at something the engine finishes on its own.
pub(crate) const ENGINE_POLL: Duration = Duration::from_millis(20);

/// How long Docker may take a paused container for a running one, or a running one for paused, before it
/// is believed.
pub(crate) const PAUSE_SETTLED: Duration = Duration::from_secs(2);

/// Creates that make sense at the same time; beyond it an engine only gets slower.
pub(crate) const CONCURRENT_CREATES: usize = 4;

/// Size of `/run`, which is empty and read-only.
pub(crate) const RUN_BYTES: u64 = 64 << 10;

/// Size of `/dev/shm`, or the memory limit when that is smaller.
pub(crate) const SHM_BYTES: u64 = 64 << 20;

/// Files in each temporary file system: one per this many bytes of its size.
pub(crate) const TMPFS_BYTES_PER_INODE: u64 = 4096;

/// Open files of one process, or half of it, as often as needed, where the host refuses as many.
pub(crate) const MAX_OPEN_FILES: u64 = 65_536;

/// With fewer, machines are not made.
pub(crate) const MIN_OPEN_FILES: u64 = 1024;

/// Bytes one process may lock in memory.
pub(crate) const MAX_LOCKED_BYTES: u64 = 8 << 20;

/// How old a report of the controls may be before it is measured again.
pub(crate) const CONTROLS_FRESH_FOR: Duration = Duration::from_secs(30);

/// How long a machine may take to try what it must not reach; then it counts as not tried.
pub(crate) const ATTEMPT_DEADLINE: Duration = Duration::from_secs(60);

/// Of what it says; the rest is not read.
pub(crate) const ATTEMPT_OUTPUT_BYTES: usize = 256 << 10;

/// How long what an image is made of is taken to be known.
pub(crate) const IMAGE_FRESH_FOR: Duration = Duration::from_secs(5);

/// Images whose description is remembered; beyond it all are forgotten.
pub(crate) const REMEMBERED_IMAGES: usize = 1024;

/// An out-of-memory kill that the machine outlived by this much did not end it.
pub(crate) const OOM_KILL_SETTLED: Duration = Duration::from_secs(2);

/// How long the size of a workspace is taken to be known: measuring walks all of it.
pub(crate) const USAGE_FRESH_FOR: Duration = Duration::from_secs(5);

/// How much of a workspace is looked at for what it takes on disk.
pub(crate) const MAX_MEASURED_ENTRIES: usize = 500_000;
pub(crate) const MAX_MEASURED_DEPTH: usize = 100;

/// Threads on the host of a machine with a kernel of its own: as many, and for each of its processes
/// these. gVisor's of 2024 was seen with 60, and with 10 for each process that came and went on a busy
/// host. At the limit its kernel ends, and the machine.
pub(crate) const OWN_KERNEL_TASKS: i64 = 128;
pub(crate) const OWN_KERNEL_TASKS_PER_PROCESS: i64 = 16;
