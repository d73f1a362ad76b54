//! Kept workspaces: who may have which, and what is told of them. They are the engine's; there is
//! no table of them.

use std::sync::atomic::Ordering;

use sandbank_engine::{EngineError, Machine, MachineSpec, SandboxId, WorkspaceId};
use serde_json::json;

use crate::context::Context;
use crate::sandbox::{Sandbox, SharedSandbox};
use crate::{CreateRequest, OrchestratorError, SandboxState};

/// Refuses what the engine does not know.
pub(crate) fn check(context: &Context, request: &CreateRequest) -> Result<(), OrchestratorError> {
    if request.workspace.is_none() || context.engine.capabilities().kept_workspaces {
        return Ok(());
    }
    let name = context.engine.name();
    Err(OrchestratorError::Conflict(format!("the engine {name} has no kept workspaces")))
}

/// Whoever names a workspace gets that one, or is told: its files would end up in another.
pub(crate) fn same(sandbox: &Sandbox, request: &CreateRequest) -> Result<(), OrchestratorError> {
    let facts = &sandbox.facts;
    if request.workspace.is_none() || request.workspace == facts.workspace {
        return Ok(());
    }
    let has = match &facts.workspace {
        Some(other) => format!("the workspace {other}"),
        None => "a workspace of its own".to_owned(),
    };
    Err(OrchestratorError::Conflict(format!("the sandbox {} has this key, and {has}", facts.id)))
}

/// Before a machine is made: a workspace that is not there yet will be made for it.
pub(crate) async fn look(context: &Context, sandbox: &Sandbox) -> Result<(), OrchestratorError> {
    if let Some(workspace) = &sandbox.facts.workspace
        && !context.engine.has_workspace(workspace).await?
    {
        sandbox.makes_workspace.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// The machine of a create that failed is gone: so is what was made for it, unless somebody else
/// has used it meanwhile.
pub(crate) async fn tidy(context: &Context, sandbox: &Sandbox) {
    let made = sandbox.makes_workspace.load(Ordering::Relaxed);
    let Some(workspace) = sandbox.facts.workspace.as_ref().filter(|_| made) else { return };
    if let Err(error) = context.engine.remove_empty_workspace(workspace).await {
        tracing::warn!(%workspace, %error, "the empty workspace of a failed create stays");
    }
}

pub(crate) fn announce(context: &Context, machine: &Machine, spec: &MachineSpec) {
    if let (true, Some(workspace)) = (machine.made_workspace, &spec.workspace) {
        let detail = json!({ "workspace": workspace });
        context.events.emit("workspace.created", Some(&spec.id), detail);
    }
}

pub(crate) fn running_with(context: &Context, id: &WorkspaceId) -> Option<SandboxId> {
    let is_running =
        |sandbox: &SharedSandbox| sandbox.view.borrow().state.visible() == SandboxState::Running;
    let all = context.registry.all().into_iter();
    let mut with_it = all.filter(|sandbox| sandbox.facts.workspace.as_ref() == Some(id));
    with_it.find(is_running).map(|sandbox| sandbox.id().clone())
}

pub(crate) async fn remove(context: &Context, id: &WorkspaceId) -> Result<bool, OrchestratorError> {
    // Also those that have no machine yet, of which the engine knows nothing.
    let has_it = |sandbox: &SharedSandbox| sandbox.facts.workspace.as_ref() == Some(id);
    let mut by: Vec<_> = context.registry.all();
    by.retain(has_it);
    if !by.is_empty() {
        let mut by: Vec<_> = by.iter().map(|sandbox| sandbox.id().clone()).collect();
        by.sort();
        return Err(EngineError::WorkspaceInUse { id: id.clone(), by }.into());
    }
    let removed = context.engine.remove_workspace(id).await?;
    if removed {
        context.events.emit("workspace.removed", None, json!({ "workspace": id }));
    }
    Ok(removed)
}
