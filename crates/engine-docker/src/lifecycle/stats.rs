//! What a machine uses.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::TryStreamExt;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use sandbank_engine::{EngineError, MachineStats, SandboxId};

use super::{Parts, workspaces};
use crate::connection::status_of;
use crate::limits::{MAX_MEASURED_DEPTH, MAX_MEASURED_ENTRIES};
use crate::naming;

pub(super) async fn stats(parts: &Arc<Parts>, id: &SandboxId) -> Result<MachineStats, EngineError> {
    let entry = super::known(parts, id).await?;
    let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
    let name = naming::container(id);
    let mut answers = parts.client.api().stats(&name, Some(options));
    let told = match answers.try_next().await {
        Ok(told) => told.unwrap_or_default(),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
            return Err(EngineError::NotFound(id.clone()));
        }
        Err(error) => return Err(parts.client.failed("tell what a container uses")(error)),
    };
    // Without a cgroup it would be told what all the rest uses.
    let told = if parts.host.has_cgroups { told } else { ContainerStatsResponse::default() };
    let memory = told.memory_stats.unwrap_or_default();
    let cpu = told.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage);
    let disk_bytes = match entry.usage() {
        Some(bytes) => bytes,
        None => {
            let volume = match entry.spec().and_then(|spec| spec.workspace) {
                Some(kept) => naming::kept_volume(&parts.settings.instance, &kept),
                None => naming::own_volume(id),
            };
            let bytes = workspaces::usage(parts, &volume).await?.unwrap_or(0);
            entry.set_usage(bytes);
            bytes
        }
    };
    let usage = memory.usage.unwrap_or(0);
    Ok(MachineStats {
        memory_bytes: usage,
        // Only cgroup v1 remembers.
        memory_peak_bytes: memory.max_usage.unwrap_or(usage).max(usage),
        cpu_usage_us: cpu.unwrap_or(0) / 1000,
        pids: told.pids_stats.and_then(|pids| pids.current).unwrap_or(0),
        disk_bytes,
        oom_kills: entry.oom_kills(),
    })
}

/// Blocking. What files take on disk, as far as it is looked; what vanishes meanwhile takes
/// nothing. By descriptor, because whoever is in the machine may put a link in a directory's place.
pub(super) fn measure(root: &Path) -> u64 {
    let mut measure = Measure { bytes: 0, entries_left: MAX_MEASURED_ENTRIES };
    if let Ok(directory) = rustix::fs::open(root, DIRECTORY, Mode::empty()) {
        measure.take(&directory, MAX_MEASURED_DEPTH);
    }
    measure.bytes
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const BLOCK: u64 = 512;

struct Measure {
    bytes: u64,
    entries_left: usize,
}

impl Measure {
    fn take(&mut self, directory: &OwnedFd, depth_left: usize) {
        let Ok(entries) = Dir::read_from(directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let Some(left) = self.entries_left.checked_sub(1) else { return };
            self.entries_left = left;
            let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory
                && depth_left > 0
                && let Ok(inside) = rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())
            {
                self.take(&inside, depth_left - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_links_lead_to_is_not_measured() {
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("large"), vec![1; 1 << 20]).unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("a/b/small"), vec![1; 64 << 10]).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("a/link")).unwrap();
        let bytes = measure(root.path());
        assert!((64 << 10..512 << 10).contains(&bytes), "{bytes}");
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("b")).unwrap();
        assert_eq!(measure(&root.path().join("b")), 0, "the root itself is a link");
    }
}
