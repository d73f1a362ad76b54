//! Limits of unpacking, beside those of every archive. An archive beyond any of them is refused
//! with `BadImage`, and nothing of it stays on disk.

/// Longest path of an entry, as the kernel has it.
pub(super) const PATH_BYTES: usize = 4095;

/// Longest single name of an entry, as the kernel has it.
pub(super) const NAME_BYTES: usize = 255;

/// Directories above an entry.
pub(super) const DEPTH: usize = 256;

/// The image's own `/etc/passwd` or `/etc/group`; a larger one counts as absent.
pub(super) const ACCOUNTS_BYTES: u64 = 1 << 20;

/// Largest host file copied into the host image's `/etc`; larger ones are left out.
pub(super) const HOST_FILE_BYTES: u64 = 1 << 20;

/// Highest user or group id kept; others become `nobody`, as a sandbox maps no more.
pub(super) const HIGHEST_ID: u64 = 65_535;

/// How long clearing away waits for an import to end; then it is left to the next open.
pub(super) const LOCK_PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);
