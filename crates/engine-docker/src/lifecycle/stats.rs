//! What a machine uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::TryStreamExt;
use sandbank_engine::{EngineError, MachineStats, SandboxId};

use super::{Parts, workspaces};
use crate::connection::status_of;
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

/// Blocking. What files take on disk; what vanishes meanwhile takes nothing.
pub(super) fn measure(root: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    let mut open: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * BLOCK;
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}
