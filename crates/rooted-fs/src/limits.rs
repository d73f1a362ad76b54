//! Bounds of this crate, each with what happens at the limit.

/// Longest path text a client may send; a longer one is refused as [`crate::InvalidPath`].
pub const MAX_PATH_BYTES: usize = 4096;

/// Longest name within a path, as in the kernel; a longer one is refused.
pub const MAX_NAME_BYTES: usize = 255;

/// How often a resolution is tried again when a rename elsewhere disturbed it (`EAGAIN`); then
/// the operation fails as [`crate::RootedError::Contended`].
pub(crate) const RESOLVE_ATTEMPTS: u32 = 256;

/// Links that one path may go through, as in the kernel, and as many with absolute targets below the
/// root; then it counts as leading outside.
pub(crate) const MAX_LINKS: u32 = 40;

/// Directories within each other that one path may lead through where the kernel has no `openat2`,
/// since each is held open: twice what fits into a path without links. Beyond it the operation fails
/// as [`crate::RootedError::PathTooLong`].
pub(crate) const STEPWISE_HELD_DIRECTORIES: usize = 4096;

/// Random names tried for a temporary file before giving up with `EEXIST`.
pub(crate) const TEMPORARY_NAME_ATTEMPTS: u32 = 16;

/// Directory descriptors that one removal holds; deeper trees are reopened on the way up.
pub(crate) const REMOVAL_HELD_DIRECTORIES: usize = 64;

/// How often a removal looks again at a tree that changes under it; then it fails as
/// [`crate::RootedError::Contended`].
pub(crate) const REMOVAL_RETRIES: u32 = 4096;

/// Directory descriptors that a walk or a copy holds on each side; deeper trees are reopened on the
/// way up.
pub(crate) const WALK_HELD_DIRECTORIES: usize = 64;

/// Names of directories that a walk remembers to enter them later, or of all entries of one
/// directory in order to sort them; beyond it the directory is told as unreadable.
pub(crate) const WALK_NAMES_BYTES: usize = 64 << 20;

/// Entries of one copy or one change of modes; beyond it the operation fails as
/// [`crate::RootedError::TooWide`].
pub(crate) const MAX_TREE_ENTRIES: u64 = 1_000_000;

/// Directories within each other in one copy or one change of modes; beyond it the operation fails as
/// [`crate::RootedError::TooDeep`]. Each of them has its whole path in memory.
pub(crate) const MAX_TREE_LEVELS: usize = 1_000;

/// Bytes copied between two looks whether the copy is still wanted.
pub(crate) const COPY_BYTES_PER_LOOK: u64 = 8 << 20;

/// Bytes of directory entries read at once.
pub(crate) const DIRECTORY_BUFFER_BYTES: usize = 32 * 1024;
