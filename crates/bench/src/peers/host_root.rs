//! The root directory that container peers are given: nothing in it but mount points and the
//! links of a merged `/usr`, which is mounted from the host as in a sandbox of the `host` image.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Context;

pub(crate) const WORKSPACE: &str = sandbank_protocol::WORKSPACE;

/// Who commands run as, user and group.
pub(crate) const USER: u32 = 1000;

/// Limits that every container peer sets, so that it makes the cgroups a sandbox has.
pub(crate) const MEMORY_BYTES: u64 = 1 << 30;
pub(crate) const PIDS: u32 = 512;
pub(crate) const CPU_PERIOD: u64 = 100_000;
pub(crate) const CPU_QUOTA: u64 = 100_000;

const MOUNT_POINTS: [&str; 7] = ["usr", "etc", "proc", "sys", "dev", "tmp", "run"];

/// Links into `/usr` on a merged-usr system.
const LINKS: [&str; 5] = ["bin", "sbin", "lib", "lib32", "lib64"];

pub(crate) fn make(root: &Path) -> anyhow::Result<()> {
    for dir in MOUNT_POINTS {
        fs::create_dir_all(root.join(dir))?;
    }
    fs::create_dir_all(root.join(WORKSPACE.trim_start_matches('/')))?;
    for link in LINKS {
        let Ok(target) = fs::read_link(Path::new("/").join(link)) else { continue };
        symlink(&target, root.join(link)).with_context(|| format!("link /{link}"))?;
    }
    anyhow::ensure!(root.join("bin").is_symlink(), "the host's /usr is not merged");
    Ok(())
}
