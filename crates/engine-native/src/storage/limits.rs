//! Limits of the storage, and what happens at each.

use std::time::Duration;

/// Smallest pool that `mkfs.btrfs` and a few workspaces fit in. A smaller one is refused at open.
pub(super) const MIN_POOL_BYTES: u64 = 256 << 20;

/// Below this much room on the file system under the pool, `create` answers `StorageFull`: a
/// sparse pool that cannot grow turns read-only for every sandbox.
pub(super) const HOST_RESERVE_BYTES: u64 = 256 << 20;

/// Smallest quota. Below it btrfs cannot even make the first directory.
pub(super) const MIN_QUOTA_BYTES: u64 = 1 << 20;

/// Tries to get a free loop device when others take them at the same time; then `Unavailable`.
pub(super) const LOOP_ATTEMPTS: u32 = 64;

/// How long the pool may be in use after its last workspace is gone; then it stays mounted.
pub(super) const UNMOUNT_PATIENCE: Duration = Duration::from_secs(2);

/// Directories held open while a tree is walked. Deeper trees are flattened when removed and
/// counted as a lower bound when measured.
pub(super) const WALK_DEPTH: usize = 64;

/// Entries counted by a plain workspace's `usage`; beyond them the answer is a lower bound.
pub(super) const USAGE_ENTRIES: u64 = 500_000;
