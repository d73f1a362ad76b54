//! Kept workspaces, and which machines have them: their records say so, from before one is made
//! for them until nothing of the machine is left.

use std::sync::Arc;

use sandbank_engine::{EngineError, MachineSpec, SandboxId, WorkspaceId, WorkspaceInfo};

use super::{Parts, blocking};

pub(super) async fn list(parts: &Arc<Parts>) -> Result<Vec<WorkspaceInfo>, EngineError> {
    let parts = Arc::clone(parts);
    blocking(move || {
        let mut found = Vec::new();
        for id in parts.kept.list()? {
            let path = parts.kept.path(&id);
            // None: it was removed since.
            let Some(bytes) = parts.storage.usage_of(&path)? else { continue };
            let quota_bytes = parts.storage.quota_of(&path)?;
            let in_use_by = users(&parts, &id).into_iter().map(|spec| spec.id).collect();
            found.push(WorkspaceInfo { id, bytes, quota_bytes, in_use_by });
        }
        Ok(found)
    })
    .await
}

pub(super) async fn remove(parts: &Arc<Parts>, id: &WorkspaceId) -> Result<bool, EngineError> {
    let (parts, id) = (Arc::clone(parts), id.clone());
    blocking(move || {
        let by = || users(&parts, &id).into_iter().map(|spec| spec.id).collect::<Vec<SandboxId>>();
        parts.kept.remove(&*parts.storage, &id, by)
    })
    .await
}

pub(super) async fn remove_empty(
    parts: &Arc<Parts>,
    id: &WorkspaceId,
) -> Result<bool, EngineError> {
    let (parts, id) = (Arc::clone(parts), id.clone());
    blocking(move || {
        parts.kept.remove_empty(&*parts.storage, &id, || !users(&parts, &id).is_empty())
    })
    .await
}

pub(super) async fn quota(
    parts: &Arc<Parts>,
    id: &WorkspaceId,
) -> Result<Option<u64>, EngineError> {
    let (parts, path) = (Arc::clone(parts), parts.kept.path(id));
    blocking(move || if path.is_dir() { parts.storage.quota_of(&path) } else { Ok(None) }).await
}

/// For a machine whose record names it already. While several machines have it, the smallest of
/// their quotas holds: what each of them was promised to be kept from is kept from.
pub(super) fn provide(
    parts: &Parts,
    id: &WorkspaceId,
) -> Result<(std::path::PathBuf, bool), EngineError> {
    let quota = || users(parts, id).iter().filter_map(|spec| parts.quota(spec)).min();
    parts.kept.provide(&*parts.storage, id, quota)
}

/// A machine that had it is gone, and with it what it was promised.
pub(super) fn adjust(parts: &Parts, id: &WorkspaceId) {
    let quota = || {
        let users = users(parts, id);
        let smallest = users.iter().filter_map(|spec| parts.quota(spec)).min();
        (!users.is_empty()).then_some(smallest)
    };
    if let Err(error) = parts.kept.adjust(&*parts.storage, id, quota) {
        tracing::warn!(workspace = %id, %error, "a kept workspace has the quota of a machine that is gone");
    }
}

/// Whether a machine may have one: of those without a record nobody knows.
pub(super) fn may_be_in_use(parts: &Parts) -> bool {
    let may_use = |record: crate::machine::Record| record.spec.workspace.is_some();
    parts.table.all().into_iter().any(|(_, entry)| entry.record().is_none_or(may_use))
}

fn users(parts: &Parts, id: &WorkspaceId) -> Vec<MachineSpec> {
    let records = parts.table.all().into_iter().filter_map(|(_, entry)| entry.record());
    let specs = records.map(|record| record.spec);
    let mut users: Vec<_> = specs.filter(|spec| spec.workspace.as_ref() == Some(id)).collect();
    users.sort_by(|a, b| a.id.cmp(&b.id));
    users
}
