//! The temporary file systems of a machine, with the flags that the native engine gives them.

use std::collections::HashMap;

use sandbank_engine::Limits;

use crate::limits::{RUN_BYTES, SHM_BYTES, TMPFS_BYTES_PER_INODE};

/// Covers the image's own; nothing is in it.
const EMPTY: &str = "ro,noexec,nosuid,nodev,size=4096,nr_inodes=4,mode=755";

/// By their path. `declared` are the volumes of the image, which would be writable and of the
/// engine's making.
pub(super) fn mounts(limits: &Limits, declared: &[String]) -> HashMap<String, String> {
    let shared = SHM_BYTES.min(limits.memory_bytes);
    let mut mounts: HashMap<String, String> =
        declared.iter().map(|path| (path.clone(), EMPTY.to_owned())).collect();
    mounts.extend([
        ("/tmp".to_owned(), writable("exec", limits.tmp_bytes)),
        ("/var/tmp".to_owned(), writable("exec", limits.tmp_bytes)),
        ("/dev/shm".to_owned(), writable("noexec", shared)),
        ("/run".to_owned(), format!("ro,noexec,nosuid,nodev,size={RUN_BYTES},mode=755")),
    ]);
    mounts
}

fn writable(exec: &str, bytes: u64) -> String {
    // The kernel takes 0 for no bound at all.
    let bytes = bytes.max(4096);
    let inodes = (bytes / TMPFS_BYTES_PER_INODE).max(64);
    format!("rw,{exec},nosuid,nodev,size={bytes},nr_inodes={inodes},mode=1777")
}
