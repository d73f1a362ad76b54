//! Bounds of this crate, each with what happens at the limit.

/// Longest path text a client may send; a longer one is refused as [`crate::InvalidPath`].
pub const MAX_PATH_BYTES: usize = 4096;

/// Longest name within a path, as in the kernel; a longer one is refused.
pub const MAX_NAME_BYTES: usize = 255;

/// How often a resolution is tried again when a rename elsewhere disturbed it (`EAGAIN`); then
/// the operation fails as [`crate::RootedError::Contended`].
pub(crate) const RESOLVE_ATTEMPTS: u32 = 256;

/// Links with absolute targets below the root that one path may go through, as in the kernel;
/// then it counts as leading outside.
pub(crate) const MAX_LINKS: u32 = 40;

/// Random names tried for a temporary file before giving up with `EEXIST`.
pub(crate) const TEMPORARY_NAME_ATTEMPTS: u32 = 16;

/// Directory descriptors that one removal holds; deeper trees are reopened on the way up.
pub(crate) const REMOVAL_HELD_DIRECTORIES: usize = 64;

/// How often a removal looks again at a tree that changes under it; then it fails as
/// [`crate::RootedError::Contended`].
pub(crate) const REMOVAL_RETRIES: u32 = 4096;

/// Bytes of directory entries read at once.
pub(crate) const DIRECTORY_BUFFER_BYTES: usize = 32 * 1024;
