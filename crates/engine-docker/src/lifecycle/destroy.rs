//! Removing a machine with everything of it, from whatever state it is in.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::errors::Error;
use bollard::query_parameters::{RemoveContainerOptionsBuilder, RemoveVolumeOptions};
use sandbank_engine::{DeathCause, EngineError, SandboxId};
use sandbank_fault_points::Point;
use tokio::time::Instant;

use super::{Parts, reach};
use crate::connection::status_of;
use crate::limits::{ENGINE_POLL, REMOVAL_DEADLINE};
use crate::naming;

/// In a task of its own, so that a caller that stops waiting does not stop it half-way.
pub(super) async fn destroy(parts: &Arc<Parts>, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.get_or_insert(id, None);
    let (parts, id) = (Arc::clone(parts), id.clone());
    let task = tokio::spawn(async move {
        let _busy = entry.busy.lock().await;
        let removed = remove_all(&parts, &id).await;
        if removed.is_ok() {
            entry.set_dead(DeathCause::Unknown);
            parts.table.remove(&id);
        }
        removed
    });
    match task.await {
        Ok(removed) => removed,
        Err(error) => Err(EngineError::Internal(format!("destroying a machine failed: {error}"))),
    }
}

/// Everything but the entry. Each step is fine with having been done before. What has the name
/// and another's label is not touched.
pub(super) async fn remove_all(parts: &Parts, id: &SandboxId) -> Result<(), EngineError> {
    let entry = parts.table.get(id);
    let set_ending = |ending| entry.iter().for_each(|entry| entry.set_ending(ending));
    set_ending(true);
    let removed = remove_each(parts, id).await;
    // What becomes of a container that stays is not our doing.
    set_ending(removed.is_ok());
    removed
}

async fn remove_each(parts: &Parts, id: &SandboxId) -> Result<(), EngineError> {
    let deadline = Instant::now() + REMOVAL_DEADLINE;
    let container = naming::container(id);
    if is_our_container(parts, &container).await? {
        until_gone(deadline, || async {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            parts.client.api().remove_container(&container, Some(options)).await
        })
        .await
        .map_err(parts.client.failed("remove a container"))?;
    }
    reach(Point::ContainerRemoved)?;
    let volume = naming::own_volume(id);
    if is_our_volume(parts, &volume).await? {
        until_gone(deadline, || async {
            parts.client.api().remove_volume(&volume, None::<RemoveVolumeOptions>).await
        })
        .await
        .map_err(parts.client.failed("remove a volume"))?;
    }
    reach(Point::VolumeRemoved)
}

async fn is_our_container(parts: &Parts, name: &str) -> Result<bool, EngineError> {
    match parts.client.api().inspect_container(name, None).await {
        Ok(found) => Ok(is_ours(parts, found.config.and_then(|config| config.labels))),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => Ok(false),
        Err(error) => Err(parts.client.failed("look at a container")(error)),
    }
}

async fn is_our_volume(parts: &Parts, name: &str) -> Result<bool, EngineError> {
    match parts.client.api().inspect_volume(name).await {
        Ok(found) => Ok(is_ours(parts, Some(found.labels))),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => Ok(false),
        Err(error) => Err(parts.client.failed("look at a volume")(error)),
    }
}

fn is_ours(parts: &Parts, labels: Option<HashMap<String, String>>) -> bool {
    let instance = labels.and_then(|mut labels| labels.remove(naming::INSTANCE));
    instance.is_some_and(|instance| instance == parts.settings.instance.to_string())
}

/// Asks until the engine says that there is no such thing, or that it did it. One that somebody
/// else is removing, or that is in use for another moment, is a conflict.
async fn until_gone<F: Future<Output = Result<(), Error>>>(
    deadline: Instant,
    ask: impl Fn() -> F,
) -> Result<(), Error> {
    loop {
        let answer = ask().await;
        match answer.as_ref().err().and_then(status_of).map(|refusal| refusal.status) {
            None => return answer,
            Some(404) => return Ok(()),
            Some(409 | 500) if Instant::now() < deadline => tokio::time::sleep(ENGINE_POLL).await,
            Some(_) => return answer,
        }
    }
}
