//! Every machine of this instance, also those an earlier daemon began.

use std::sync::Arc;

use sandbank_engine::{EngineError, Machine, MachineState, SandboxId};

use super::{Parts, blocking};

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
    let alive = entry.filter(|entry| entry.process().is_some() && !entry.is_dead());
    let state = match &alive {
        None => MachineState::Dead,
        Some(_) if parts.cgroups.frozen(&id).is_ok_and(|frozen| frozen.asked) => {
            MachineState::Paused
        }
        Some(_) => MachineState::Running,
    };
    let process = alive.and_then(|entry| entry.record()).and_then(|record| record.process);
    Machine { id, state, pid: process.map(|process| process.pid) }
}
