//! Removing a machine with everything of it, from whatever state it is in.

use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, SandboxId};
use sandbank_fault_points::Point;
use tokio::time::Instant;

use super::table::Entry;
use super::{Parts, blocking, reach, workspaces};
use crate::kernel::process::kill;
use crate::limits::{DEATH_DEADLINE, KERNEL_POLL};

/// In a task of its own, so that a caller that stops waiting does not stop it half-way.
pub(super) async fn destroy(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.get_or_insert(id);
    let (parts, id) = (Arc::clone(parts), id.clone());
    let task = tokio::spawn(async move {
        let _busy = entry.busy.lock().await;
        let kept = entry.record().and_then(|record| record.spec.workspace);
        remove_all(&parts, &id, &entry).await?;
        entry.set_dead(DeathCause::Unknown);
        parts.table.remove(&id);
        parts.stock.refill();
        match kept {
            None => Ok(()),
            Some(kept) => {
                let adjust = move || {
                    workspaces::adjust(&parts, &kept);
                    Ok(())
                };
                blocking(adjust).await
            }
        }
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
    let deadline = Instant::now() + DEATH_DEADLINE;
    kill_first(parts, id, entry, deadline).await?;
    reach(Point::Killed)?;
    let slot = entry.record().map(|record| record.uid_slot);
    loop {
        let (worker, machine) = (Arc::clone(parts), id.clone());
        if blocking(move || remove_if_empty(&worker, &machine)).await? {
            break;
        }
        if Instant::now() > deadline {
            return Err(EngineError::Internal(format!("the cgroups of machine {id} stay busy")));
        }
        tokio::time::sleep(KERNEL_POLL).await;
    }
    reach(Point::StorageDeleted)?;
    if let Some(networks) = &parts.networks {
        networks.release(id).await;
    }
    reach(Point::NetworkReleased)?;
    {
        let (parts, id) = (Arc::clone(parts), id.clone());
        let remove = "remove the machine's directory";
        blocking(move || parts.directory.remove(&id).map_err(EngineError::io(remove))).await?;
    }
    reach(Point::DirectoryRemoved)?;
    if let Some(slot) = slot {
        parts.user_namespaces.release(slot);
    }
    // Whoever calls again must not release what has been given to another meanwhile.
    entry.forget_record();
    Ok(())
}

/// The cgroups and the workspace; false while a process is left. In one go, because each turn to
/// a worker thread and back costs as much as a step.
fn remove_if_empty(parts: &Parts, id: &SandboxId) -> Result<bool, EngineError> {
    if !parts.cgroups.remove(id)? {
        // Not cloned by us, or not yet out of its cgroup.
        parts.cgroups.kill(id)?;
        return Ok(false);
    }
    reach(Point::CgroupRemoved)?;
    parts.storage.delete(id)?;
    Ok(true)
}

/// Kills the first process, and with it all others, and waits for its death.
async fn kill_first(
    parts: &Arc<Parts>,
    id: &SandboxId,
    entry: &Arc<Entry>,
    deadline: Instant,
) -> Result<(), EngineError> {
    if let Some(process) = entry.process() {
        entry.set_doomed();
        kill(process.get_ref()).map_err(EngineError::io("kill the machine"))?;
        // With its first process dies everything in its pid namespace. Being frozen keeps a
        // process from dying on v1.
        let _ = parts.cgroups.freeze(id, false);
        let died = tokio::time::timeout_at(deadline, process.readable()).await;
        if died.is_err() {
            return Err(EngineError::Internal(format!("machine {id} does not die")));
        }
    }
    Ok(())
}
