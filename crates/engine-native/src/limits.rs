//! Bounds of the native engine, each with what happens when it is reached.

use std::time::Duration;

/// Ranges of 65 536 ids, so machines alive at once; one more is `Exhausted`.
pub(crate) const UID_SLOTS: u32 = 4096;

/// First id of the first range: above what systemd hands out to containers.
pub(crate) const UID_BASE: u32 = 0x7000_0000;

/// How long a daemon waits for another to let go of its name on this host; then it is refused.
pub(crate) const HOST_LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Ids per range.
pub(crate) const UID_RANGE: u32 = 0x1_0000;

/// Layers of one image that can be stacked; an image with more is `BadImage`.
pub(crate) const MAX_LOWER: usize = 100;

/// Binds of one image; an image with more is `BadImage`.
pub(crate) const MAX_BINDS: usize = 80;

/// Largest message between daemon and spawner; a larger one is refused by its sender.
pub(crate) const MAX_WIRE_BYTES: usize = 64 * 1024;

/// What the kernel passes in one message.
pub(crate) const MAX_WIRE_FDS: usize = 253;

/// Size of `/run`, which is empty and read-only.
pub(crate) const RUN_BYTES: u64 = 64 << 10;

/// Size of `/dev/shm`, or the memory limit when that is smaller; writes beyond fail with ENOSPC.
pub(crate) const SHM_BYTES: u64 = 64 << 20;

/// Files in each of `/tmp` and `/dev/shm`: one per this many bytes of its size.
pub(crate) const TMPFS_BYTES_PER_INODE: u64 = 4096;

/// Pseudo-terminals of one machine; opening one more fails with ENOSPC.
pub(crate) const MAX_PTYS: u32 = 256;

/// Open files of one process, or the daemon's own hard limit when that is smaller.
pub(crate) const MAX_OPEN_FILES: u64 = 65_536;

/// Bytes one process may lock in memory.
pub(crate) const MAX_LOCKED_BYTES: u64 = 8 << 20;

/// Connections waiting to be accepted by a runner; further ones wait in `connect`.
pub(crate) const LISTEN_BACKLOG: i32 = 128;

/// How long the spawner may take for one request before the machine is given up.
pub(crate) const SPAWN_DEADLINE: Duration = Duration::from_secs(20);

/// How long `connect` waits for a full accept queue to drain.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// How long `destroy` waits for the processes of a machine before it fails.
pub(crate) const DEATH_DEADLINE: Duration = Duration::from_secs(15);

/// How long `pause` waits for every process to stop before it thaws again and fails.
pub(crate) const FREEZE_DEADLINE: Duration = Duration::from_secs(10);

/// How long a death waits for the spawner's report of its exit status.
pub(crate) const STATUS_DEADLINE: Duration = Duration::from_secs(2);

/// Exit statuses kept for machines nobody has asked about yet; the oldest are forgotten.
pub(crate) const KEPT_STATUSES: usize = 8192;

/// Pause between two looks at something the kernel finishes on its own.
pub(crate) const KERNEL_POLL: Duration = Duration::from_millis(1);

/// Spawners started in a row that died before answering; then `Unavailable`.
pub(crate) const SPAWNER_ATTEMPTS: u32 = 3;

/// A spawner that lived shorter is replaced only after this long, or when one is needed.
pub(crate) const SPAWNER_MIN_LIFE: Duration = Duration::from_secs(1);

/// How old a report of the controls may be before it is measured again.
pub(crate) const CONTROLS_FRESH_FOR: Duration = Duration::from_secs(30);

/// How long an image is taken to be unchanged on disk before it is looked at again.
pub(crate) const IMAGE_FRESH_FOR: Duration = Duration::from_secs(5);

/// How long after a create what it used up is made again.
pub(crate) const REFILL_PAUSE: Duration = Duration::from_millis(10);

/// Open files the daemon must be allowed for a full stock; with fewer it keeps one of each.
pub(crate) const FILES_FOR_STOCK: u64 = 1024;

/// The log of a machine's runner; above it the older half is cut off.
pub(crate) const MAX_LOG_BYTES: u64 = 256 << 10;

/// As much as its pipe holds is read at once, and then nothing for a while: what a runner says
/// beyond that is lost.
pub(crate) const MAX_LOG_READ_BYTES: usize = 64 << 10;
pub(crate) const LOG_PAUSE: Duration = Duration::from_millis(100);

/// A process that the kernel killed for memory is gone by then.
pub(crate) const OOM_KILL_SETTLED: Duration = Duration::from_secs(2);
