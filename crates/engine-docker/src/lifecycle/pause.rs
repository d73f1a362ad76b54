//! Stopping every process of a machine where it stands, and letting them go on.
//!
//! Docker hears of both from containerd, a moment after it did them itself, and believes the later word: a
//! container that is paused, resumed and paused in quick succession is for a moment taken for paused while it
//! runs, or the other way round. So "there is nothing to do" counts only if Docker stays with it. On cgroup v1 a
//! busy kernel may not stop all processes within runc's patience, which then lets them go on: that is asked again.

use std::sync::Arc;

use bollard::errors::Error;
use sandbank_engine::{EngineError, SandboxId};
use tokio::time::Instant;

use super::Parts;
use crate::connection::status_of;
use crate::{limits, naming};

pub(super) async fn pause(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    until_settled(parts, id, Wish::Pause).await
}

pub(super) async fn resume(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    until_settled(parts, id, Wish::Resume).await
}

#[derive(Clone, Copy)]
enum Wish {
    Pause,
    Resume,
}

impl Wish {
    async fn ask(self, parts: &Parts, id: &SandboxId) -> Result<(), Error> {
        let (api, container) = (parts.client.api(), naming::container(id));
        match self {
            Self::Pause => api.pause_container(&container).await,
            Self::Resume => api.unpause_container(&container).await,
        }
    }

    fn step(self) -> &'static str {
        match self {
            Self::Pause => "pause a container",
            Self::Resume => "resume a container",
        }
    }

    /// The engine's words for there being nothing to do.
    fn done(self) -> &'static str {
        match self {
            Self::Pause => "already paused",
            Self::Resume => "is not paused",
        }
    }
}

async fn until_settled(parts: &Arc<Parts>, id: &SandboxId, wish: Wish) -> Result<(), EngineError> {
    let entry = super::known(parts, id).await?;
    let _busy = entry.busy.lock().await;
    let settled = Instant::now() + limits::PAUSE_SETTLED;
    loop {
        if entry.is_dead() {
            return Err(EngineError::Dead(id.clone()));
        }
        let Err(error) = wish.ask(parts, id).await else { return Ok(()) };
        match status_of(&error) {
            Some(refusal) if refusal.status == 404 => {
                return Err(EngineError::NotFound(id.clone()));
            }
            Some(refusal) if refusal.message.contains(wish.done()) => {
                if Instant::now() >= settled {
                    return Ok(());
                }
            }
            Some(refusal) if refusal.message.contains("is not running") => {
                return Err(EngineError::Dead(id.clone()));
            }
            Some(refusal)
                if refusal.message.contains("unable to freeze") && Instant::now() < settled => {}
            _ => return Err(parts.client.failed(wish.step())(error)),
        }
        tokio::time::sleep(limits::ENGINE_POLL).await;
    }
}
