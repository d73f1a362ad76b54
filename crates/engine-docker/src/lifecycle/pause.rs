//! Stopping every process of a machine where it stands, and letting them go on.

use std::sync::Arc;

use sandbank_engine::{EngineError, SandboxId};

use super::Parts;
use crate::connection::status_of;
use crate::naming;

pub(super) async fn pause(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = super::known(parts, id).await?;
    let _busy = entry.busy.lock().await;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    let paused = parts.client.api().pause_container(&naming::container(id)).await;
    answer(parts, id, "pause a container", "already paused", paused)
}

pub(super) async fn resume(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = super::known(parts, id).await?;
    let _busy = entry.busy.lock().await;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    let resumed = parts.client.api().unpause_container(&naming::container(id)).await;
    answer(parts, id, "resume a container", "is not paused", resumed)
}

/// `done` are the engine's words for there being nothing to do.
fn answer(
    parts: &Parts,
    id: &SandboxId,
    step: &'static str,
    done: &str,
    answered: Result<(), bollard::errors::Error>,
) -> Result<(), EngineError> {
    let Err(error) = answered else { return Ok(()) };
    match status_of(&error) {
        Some(refusal) if refusal.status == 404 => Err(EngineError::NotFound(id.clone())),
        Some(refusal) if refusal.message.contains(done) => Ok(()),
        Some(refusal) if refusal.message.contains("is not running") => {
            Err(EngineError::Dead(id.clone()))
        }
        _ => Err(parts.client.failed(step)(error)),
    }
}
