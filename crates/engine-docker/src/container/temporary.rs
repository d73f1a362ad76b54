//! The temporary file systems of a machine, with the flags that the native engine gives them.

use std::collections::HashMap;

use bollard::models::{Mount, MountTmpfsOptions, MountType};
use sandbank_engine::Limits;

use crate::limits::{RUN_BYTES, SHM_BYTES, TMPFS_BYTES_PER_INODE};

/// Those that everybody may write to.
pub(super) const WRITABLE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Of what covers a volume of the image: nothing is in it.
const COVER_BYTES: i64 = 4096;
const COVER_MODE: i64 = 0o755;

/// In the place of volumes that the image declares, which would be writable and of the engine's
/// making: Docker makes none where there is a mount already.
pub(crate) fn covers(declared: &[String]) -> Vec<Mount> {
    let cover = |path: &String| Mount {
        typ: Some(MountType::TMPFS),
        target: Some(path.clone()),
        read_only: Some(true),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: Some(COVER_BYTES),
            mode: Some(COVER_MODE),
            options: None,
        }),
        ..Mount::default()
    };
    declared.iter().map(cover).collect()
}

/// By their path.
pub(super) fn mounts(limits: &Limits) -> HashMap<String, String> {
    let [tmp, var_tmp, shared] = WRITABLE.map(str::to_owned);
    let shared_bytes = SHM_BYTES.min(limits.memory_bytes);
    HashMap::from([
        (tmp, writable("exec", limits.tmp_bytes)),
        (var_tmp, writable("exec", limits.tmp_bytes)),
        (shared, writable("noexec", shared_bytes)),
        ("/run".to_owned(), format!("ro,noexec,nosuid,nodev,size={RUN_BYTES},mode=755")),
    ])
}

fn writable(exec: &str, bytes: u64) -> String {
    // The kernel takes 0 for no bound at all.
    let bytes = bytes.max(4096);
    let inodes = (bytes / TMPFS_BYTES_PER_INODE).max(64);
    format!("rw,{exec},nosuid,nodev,size={bytes},nr_inodes={inodes},mode=1777")
}
