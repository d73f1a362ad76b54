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
    let asked = Instant::now();
    while !parts.cgroups.frozen(id)?.complete {
        match asked.elapsed() {
            // Most stand still at once, sooner than any timer would tell.
            waited if waited < KERNEL_POLL => tokio::task::yield_now().await,
            waited if waited < FREEZE_DEADLINE => tokio::time::sleep(KERNEL_POLL).await,
            _ => {
                parts.cgroups.freeze(id, false)?;
                return Err(EngineError::Unavailable(format!("machine {id} does not stand still")));
            }
        }
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
