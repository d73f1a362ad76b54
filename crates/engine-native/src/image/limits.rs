//! Limits of image imports. An archive beyond any of them is refused with `BadImage`, and nothing
//! of it stays on disk.

/// What one import may take. Tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportLimits {
    /// Entries of all layers together, replaced ones included.
    pub(super) entries: u64,
    /// Bytes of the archive uncompressed, and of all files unpacked.
    pub(super) bytes: u64,
    /// With the skeleton on top, no more than a machine can stack.
    pub(super) layers: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self { entries: 1_000_000, bytes: 32 << 30, layers: 99 }
    }
}

/// Longest path of an entry, as the kernel has it.
pub(super) const PATH_BYTES: usize = 4095;

/// Longest single name of an entry, as the kernel has it.
pub(super) const NAME_BYTES: usize = 255;

/// Directories above an entry.
pub(super) const DEPTH: usize = 256;

/// A long name or a set of PAX records: held in memory, so not the archive's to choose.
pub(super) const EXTENSION_BYTES: u64 = 1 << 20;

/// Members of a `docker save` or OCI archive, which are held in memory.
pub(super) const MEMBERS: usize = 4096;

/// A manifest, an index or a configuration.
pub(super) const JSON_BYTES: u64 = 4 << 20;

/// Indexes that point to indexes.
pub(super) const INDEX_DEPTH: u32 = 3;

/// Variables of the image's environment, and the bytes of one; more are left out.
pub(super) const ENV_VARIABLES: usize = 512;
pub(super) const ENV_BYTES: usize = 32 << 10;

/// The image's own `/etc/passwd` or `/etc/group`; a larger one counts as absent.
pub(super) const ACCOUNTS_BYTES: u64 = 1 << 20;

/// Largest host file copied into the host image's `/etc`; larger ones are left out.
pub(super) const HOST_FILE_BYTES: u64 = 1 << 20;

/// Room kept free on the disk while unpacking; below it the import ends with `StorageFull`.
pub(super) const DISK_RESERVE_BYTES: u64 = 512 << 20;

/// Bytes unpacked between two looks at the free room.
pub(super) const DISK_CHECK_BYTES: u64 = 64 << 20;

/// Highest user or group id kept; others become `nobody`, as a sandbox maps no more.
pub(super) const HIGHEST_ID: u64 = 65_535;

/// How long clearing away waits for an import to end; then it is left to the next open.
pub(super) const LOCK_PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);
