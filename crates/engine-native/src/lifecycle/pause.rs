//! Stopping every process of a machine where it stands, and letting them go on.

use std::sync::Arc;

use sandbank_engine::{EngineError, SandboxId};
use tokio::time::Instant;

use super::Parts;
use crate::limits::{FREEZE_DEADLINE, KERNEL_POLL};

pub(super) async fn pause(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.find(id)?;
    let _busy = entry.busy.lock().await;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    parts.cgroups.freeze(id, true)?;
    let deadline = Instant::now() + FREEZE_DEADLINE;
    while !parts.cgroups.frozen(id)?.complete {
        if Instant::now() > deadline {
            parts.cgroups.freeze(id, false)?;
            return Err(EngineError::Unavailable(format!("machine {id} does not stand still")));
        }
        tokio::time::sleep(KERNEL_POLL).await;
    }
    Ok(())
}

pub(super) async fn resume(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.find(id)?;
    let _busy = entry.busy.lock().await;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    parts.cgroups.freeze(id, false)
}
