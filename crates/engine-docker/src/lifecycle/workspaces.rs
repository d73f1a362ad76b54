//! Kept workspaces: volumes with a label, which outlive the containers that have them.

use std::path::PathBuf;
use std::sync::Arc;

use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions};
use sandbank_engine::{EngineError, SandboxId, WorkspaceId, WorkspaceInfo};

use super::{Parts, emptiness, list, stats};
use crate::connection::status_of;
use crate::naming;

pub(super) async fn all(parts: &Arc<Parts>) -> Result<Vec<WorkspaceInfo>, EngineError> {
    let filters = naming::filter(naming::INSTANCE, Some(parts.settings.instance.as_str()));
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let listed = parts.client.api().list_volumes(Some(options)).await;
    let listed = listed.map_err(parts.client.failed("list the volumes"))?;
    let users = users(parts).await?;
    let mut found = Vec::new();
    for volume in listed.volumes.unwrap_or_default() {
        let label = volume.labels.get(naming::WORKSPACE);
        let Some(id) = label.and_then(|id| id.parse::<WorkspaceId>().ok()) else { continue };
        // None: it was removed since.
        let Some(bytes) = usage(parts, &volume.name).await? else { continue };
        let mine =
            |(workspace, user): &(WorkspaceId, SandboxId)| (*workspace == id).then(|| user.clone());
        let in_use_by = users.iter().filter_map(mine).collect();
        found.push(WorkspaceInfo { id, bytes, quota_bytes: None, in_use_by });
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

pub(super) async fn exists(parts: &Parts, id: &WorkspaceId) -> Result<bool, EngineError> {
    let name = naming::kept_volume(&parts.settings.instance, id);
    match parts.client.api().inspect_volume(&name).await {
        Ok(_) => Ok(true),
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => Ok(false),
        Err(error) => Err(parts.client.failed("look at a volume")(error)),
    }
}

/// One lock is between this and a create that wants it.
pub(super) async fn remove(parts: &Arc<Parts>, id: &WorkspaceId) -> Result<bool, EngineError> {
    let _kept = parts.kept.lock().await;
    let by = users_of(parts, id).await?;
    if !by.is_empty() {
        return Err(EngineError::WorkspaceInUse { id: id.clone(), by });
    }
    remove_volume(parts, id).await
}

/// One that nobody has and that nothing is in.
pub(super) async fn remove_empty(
    parts: &Arc<Parts>,
    id: &WorkspaceId,
) -> Result<bool, EngineError> {
    let _kept = parts.kept.lock().await;
    let name = naming::kept_volume(&parts.settings.instance, id);
    let is_used = !users_of(parts, id).await?.is_empty();
    if is_used || !exists(parts, id).await? || !emptiness::is_empty(parts, &name).await? {
        return Ok(false);
    }
    remove_volume(parts, id).await
}

async fn remove_volume(parts: &Parts, id: &WorkspaceId) -> Result<bool, EngineError> {
    let name = naming::kept_volume(&parts.settings.instance, id);
    let removed = parts.client.api().remove_volume(&name, None::<RemoveVolumeOptions>).await;
    match removed {
        Ok(()) => Ok(true),
        Err(error) => match status_of(&error).map(|refusal| refusal.status) {
            Some(404) => Ok(false),
            // Somebody else's container has it.
            Some(409) => Err(EngineError::WorkspaceInUse { id: id.clone(), by: Vec::new() }),
            _ => Err(parts.client.failed("remove a volume")(error)),
        },
    }
}

async fn users_of(parts: &Parts, id: &WorkspaceId) -> Result<Vec<SandboxId>, EngineError> {
    let users = users(parts).await?.into_iter().filter(|(workspace, _)| workspace == id);
    Ok(users.map(|(_, user)| user).collect())
}

async fn users(parts: &Parts) -> Result<Vec<(WorkspaceId, SandboxId)>, EngineError> {
    let containers = list::containers(parts).await?;
    let user = |container: list::Container| Some((container.spec?.workspace?, container.id));
    let mut users: Vec<_> = containers.into_iter().filter_map(user).collect();
    users.sort();
    Ok(users)
}

/// What a volume takes on disk: measured where its directory is in sight, else asked for, which an
/// engine measures with everything else it has. None when there is no such volume.
pub(super) async fn usage(parts: &Parts, name: &str) -> Result<Option<u64>, EngineError> {
    let volume = match parts.client.api().inspect_volume(name).await {
        Ok(volume) => volume,
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
            return Ok(None);
        }
        Err(error) => return Err(parts.client.failed("look at a volume")(error)),
    };
    let directory = PathBuf::from(&volume.mountpoint);
    // The name is in the path: not by chance somebody else's directory of that path.
    let is_its = directory.iter().any(|part| part == name);
    if is_its && std::fs::read_dir(&directory).is_ok() {
        let measured = tokio::task::spawn_blocking(move || stats::measure(&directory)).await;
        return measured.map(Some).map_err(|error| EngineError::Internal(error.to_string()));
    }
    let told = parts.client.json("/system/df?type=volume", "tell what volumes take").await?;
    let volumes = told["Volumes"].as_array().cloned().unwrap_or_default();
    let its = volumes.iter().find(|volume| volume["Name"] == name);
    Ok(Some(its.and_then(|volume| volume["UsageData"]["Size"].as_u64()).unwrap_or(0)))
}
