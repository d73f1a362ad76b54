//! Removing a machine with everything of it, from whatever state it is in.

use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, SandboxId};
use tokio::time::Instant;

use super::table::Entry;
use super::{Parts, blocking};
use crate::kernel::process::kill;
use crate::limits::{DEATH_DEADLINE, KERNEL_POLL};

/// In a task of its own, so that a caller that stops waiting does not stop it half-way.
pub(super) async fn destroy(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.get_or_insert(id);
    let (parts, id) = (Arc::clone(parts), id.clone());
    let task = tokio::spawn(async move {
        let _busy = entry.busy.lock().await;
        let removed = remove_all(&parts, &id, &entry).await;
        if removed.is_ok() {
            entry.set_dead(DeathCause::Unknown);
            parts.table.remove(&id);
            parts.stock.refill();
        }
        removed
    });
    match task.await {
        Ok(removed) => removed,
        Err(error) => Err(EngineError::Internal(format!("destroying a machine failed: {error}"))),
    }
}

/// Everything but the entry. Each step is fine with having been done before.
pub(super) async fn remove_all(
    parts: &Arc<Parts>,
    id: &SandboxId,
    entry: &Arc<Entry>,
) -> Result<(), EngineError> {
    kill_all(parts, id, entry).await?;
    let slot = entry.record().map(|record| record.uid_slot);
    {
        let (parts, id) = (Arc::clone(parts), id.clone());
        blocking(move || parts.storage.delete(&id)).await?;
    }
    if let Some(networks) = &parts.networks {
        networks.release(id).await;
    }
    {
        let (parts, id) = (Arc::clone(parts), id.clone());
        let remove = "remove the machine's directory";
        blocking(move || parts.directory.remove(&id).map_err(EngineError::io(remove))).await?;
    }
    if let Some(slot) = slot {
        parts.user_namespaces.release(slot);
    }
    Ok(())
}

/// Kills and waits until no process and no cgroup is left.
async fn kill_all(
    parts: &Arc<Parts>,
    id: &SandboxId,
    entry: &Arc<Entry>,
) -> Result<(), EngineError> {
    let deadline = Instant::now() + DEATH_DEADLINE;
    if let Some(process) = entry.process() {
        kill(process.get_ref()).map_err(EngineError::io("kill the machine"))?;
        // With its first process dies everything in its pid namespace. Being frozen keeps a
        // process from dying on v1.
        let _ = parts.cgroups.freeze(id, false);
        let died = tokio::time::timeout_at(deadline, process.readable()).await;
        if died.is_err() {
            return Err(EngineError::Internal(format!("machine {id} does not die")));
        }
    }
    loop {
        let (worker, machine) = (Arc::clone(parts), id.clone());
        let gone = blocking(move || {
            if worker.cgroups.remove(&machine)? {
                return Ok(true);
            }
            // Not cloned by us, or not yet out of its cgroup.
            worker.cgroups.kill(&machine)?;
            Ok(false)
        });
        if gone.await? {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(EngineError::Internal(format!("the cgroups of machine {id} stay busy")));
        }
        tokio::time::sleep(KERNEL_POLL).await;
    }
}
