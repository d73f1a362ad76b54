//! Limits of image imports. An archive beyond any of them is refused with `BadImage`, and nothing
//! of it stays on disk.

/// What one import may take. Tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub struct ImportLimits {
    /// Entries of all layers together, replaced ones included.
    pub entries: u64,
    /// Bytes of the archive uncompressed, and of all files unpacked.
    pub bytes: u64,
    /// With the skeleton on top, no more than a machine can stack.
    pub layers: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self { entries: 1_000_000, bytes: 32 << 30, layers: 99 }
    }
}

/// Members of a `docker save` or OCI archive, which are held in memory.
pub(crate) const MEMBERS: usize = 4096;

/// A manifest, an index or a configuration.
pub(crate) const JSON_BYTES: u64 = 4 << 20;

/// Indexes that point to indexes.
pub(crate) const INDEX_DEPTH: u32 = 3;

/// Variables of the image's environment, and the bytes of one; more are left out.
pub(crate) const ENV_VARIABLES: usize = 512;
pub(crate) const ENV_BYTES: usize = 32 << 10;

/// Room kept free on the disk while unpacking; below it the import ends with `StorageFull`.
pub const DISK_RESERVE_BYTES: u64 = 512 << 20;

/// Bytes unpacked between two looks at the free room.
pub(crate) const DISK_CHECK_BYTES: u64 = 64 << 20;
