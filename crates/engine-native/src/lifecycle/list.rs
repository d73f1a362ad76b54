//! Every machine of this instance, also those an earlier daemon began.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use sandbank_engine::{DeathCause, EngineError, Machine, MachineSpec, MachineState, SandboxId};
use sandbank_protocol::WORKSPACE;

use super::{Parts, blocking};
use crate::storage::Identity;

pub(super) async fn list(parts: &Arc<Parts>) -> Result<Vec<Machine>, EngineError> {
    let parts = Arc::clone(parts);
    blocking(move || {
        let mut ids = parts.directory.list().map_err(EngineError::io("list the machines"))?;
        ids.retain(|id| !parts.table.is_hidden(id));
        Ok(ids.into_iter().map(|id| describe(&parts, id)).collect())
    })
    .await
}

fn describe(parts: &Parts, id: SandboxId) -> Machine {
    let entry = parts.table.get(&id);
    // While it is being made or destroyed, its workspace comes and goes as it should.
    if let Some(entry) = &entry
        && let Ok(_idle) = entry.busy.try_lock()
        && let Some(record) = entry.record()
        && let Some(process) = record.process
        && entry.process().is_some()
        && workspace_is_gone(parts, &record.spec, process.pid)
    {
        entry.set_dead(DeathCause::WorkspaceGone);
    }
    let alive = entry.filter(|entry| entry.process().is_some() && !entry.is_dead());
    let state = match &alive {
        None => MachineState::Dead,
        Some(_) if parts.cgroups.frozen(&id).is_ok_and(|frozen| frozen.asked) => {
            MachineState::Paused
        }
        Some(_) => MachineState::Running,
    };
    let process = alive.and_then(|entry| entry.record()).and_then(|record| record.process);
    let pid = process.map(|process| process.pid);
    Machine { id, state, pid, made_workspace: false }
}

/// Whether somebody removed the workspace, or unmounted it inside the machine. What cannot be
/// looked at is taken to be there: this costs a machine its life.
fn workspace_is_gone(parts: &Parts, spec: &MachineSpec, pid: i32) -> bool {
    let path = match &spec.workspace {
        None => parts.storage.path(&spec.id),
        Some(kept) => parts.kept.path(kept),
    };
    let gone = match Identity::of(&path) {
        Ok(kept) => Identity::of(Path::new(&format!("/proc/{pid}/root{WORKSPACE}")))
            .is_ok_and(|inside| inside != kept),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    // Looked at last: where all workspaces were unmounted or moved away, each seems removed, but
    // machines still have theirs.
    let in_sight = || match &spec.workspace {
        None => Identity::of(parts.storage.root()).is_ok_and(|root| root == parts.storage_root),
        Some(_) => parts.kept.is_in_sight(),
    };
    gone && in_sight()
}
