//! Every machine of this instance, also those an earlier daemon began.

use std::collections::BTreeMap;
use std::sync::Arc;

use bollard::models::ContainerSummaryStateEnum as Shown;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListVolumesOptionsBuilder};
use sandbank_engine::{EngineError, Machine, MachineSpec, MachineState, SandboxId};

use super::Parts;
use crate::naming;

/// A container of ours.
pub(super) struct Container {
    pub(super) id: SandboxId,
    /// The engine's own id.
    pub(super) name: String,
    pub(super) state: MachineState,
    /// Made, but not started yet.
    is_new: bool,
    pub(super) spec: Option<MachineSpec>,
}

impl Container {
    /// One that was not started has not ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state == MachineState::Dead && !self.is_new
    }
}

pub(super) async fn list(parts: &Arc<Parts>) -> Result<Vec<Machine>, EngineError> {
    let (containers, volumes) = tokio::try_join!(containers(parts), volumes(parts))?;
    // A volume without a container is what is left of a machine, or what comes before one.
    let mut states: BTreeMap<SandboxId, MachineState> =
        volumes.into_iter().map(|id| (id, MachineState::Dead)).collect();
    for container in containers {
        let dead = parts.table.get(&container.id).is_some_and(|entry| entry.is_dead());
        let state = if dead { MachineState::Dead } else { container.state };
        states.insert(container.id, state);
    }
    states.retain(|id, _| !parts.table.is_hidden(id));
    let machine = |(id, state)| Machine { id, state, pid: None, made_workspace: false };
    Ok(states.into_iter().map(machine).collect())
}

pub(super) async fn containers(parts: &Parts) -> Result<Vec<Container>, EngineError> {
    let filters = naming::filter(naming::INSTANCE, Some(parts.settings.instance.as_str()));
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = parts.client.api().list_containers(Some(options)).await;
    let listed = listed.map_err(parts.client.failed("list the containers"))?;
    let ours = |container: bollard::models::ContainerSummary| {
        let labels = container.labels.unwrap_or_default();
        let id = labels.get(naming::SANDBOX)?.parse().ok()?;
        let spec = labels.get(naming::SPEC).and_then(|spec| serde_json::from_str(spec).ok());
        let state = match container.state {
            Some(Shown::RUNNING) => MachineState::Running,
            Some(Shown::PAUSED) => MachineState::Paused,
            _ => MachineState::Dead,
        };
        let is_new = container.state == Some(Shown::CREATED);
        Some(Container { id, name: container.id.unwrap_or_default(), state, is_new, spec })
    };
    Ok(listed.into_iter().filter_map(ours).collect())
}

/// Machines that have a workspace of their own.
async fn volumes(parts: &Parts) -> Result<Vec<SandboxId>, EngineError> {
    let filters = naming::filter(naming::INSTANCE, Some(parts.settings.instance.as_str()));
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let listed = parts.client.api().list_volumes(Some(options)).await;
    let listed = listed.map_err(parts.client.failed("list the volumes"))?;
    let volumes = listed.volumes.unwrap_or_default();
    let machine =
        |volume: bollard::models::Volume| volume.labels.get(naming::SANDBOX)?.parse().ok();
    Ok(volumes.into_iter().filter_map(machine).collect())
}
