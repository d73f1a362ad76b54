//! Kept workspaces: who may have which, and what is told of them. Each is one engine's; there is
//! no table of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sandbank_engine::{EngineError, Machine, MachineSpec, SandboxId, WorkspaceId, WorkspaceInfo};
use serde_json::json;
use tokio::time::timeout;

use crate::context::Context;
use crate::limits::OTHERS_PATIENCE;
use crate::provider::Provider;
use crate::sandbox::{Facts, Sandbox, SharedSandbox};
use crate::{CreateRequest, OrchestratorError, SandboxState};

/// Refuses what the engine does not know.
pub(crate) fn check(provider: &Provider, request: &CreateRequest) -> Result<(), OrchestratorError> {
    if request.workspace.is_none() || provider.engine.capabilities().kept_workspaces {
        return Ok(());
    }
    let name = provider.name();
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

/// Before a machine is made: a workspace that is not there yet will be made for it, unless another
/// engine has it, or may have it and does not answer. Not in a turn: others would wait for those.
pub(crate) async fn look_elsewhere(
    context: &Context,
    sandbox: &Sandbox,
) -> Result<(), OrchestratorError> {
    let Some(workspace) = &sandbox.facts.workspace else { return Ok(()) };
    if sandbox.engine().has_workspace(workspace).await? {
        return Ok(());
    }
    // Those that are about to make it first: what they have made by now, the others' engines have.
    let elsewhere = match wanted_before(context, sandbox, workspace) {
        Some(engine) => Some(engine),
        None => holder(context, workspace).await?.map(|provider| provider.name().to_owned()),
    };
    if let Some(engine) = elsewhere.filter(|engine| *engine != sandbox.facts.engine) {
        return Err(OrchestratorError::WorkspaceElsewhere { id: workspace.clone(), engine });
    }
    Ok(())
}

/// Just before, in its turn: whether the workspace is going to be made for it.
pub(crate) async fn look(sandbox: &Sandbox) -> Result<(), OrchestratorError> {
    let Some(workspace) = &sandbox.facts.workspace else { return Ok(()) };
    let is_there = sandbox.engine().has_workspace(workspace).await?;
    sandbox.makes_workspace.store(!is_there, Ordering::Relaxed);
    Ok(())
}

/// The engine of an older sandbox that names the same workspace, but not the same engine.
fn wanted_before(context: &Context, sandbox: &Sandbox, id: &WorkspaceId) -> Option<String> {
    let age = |facts: &Facts| (facts.created_at_ms, facts.id.clone());
    let all = context.registry.all().into_iter();
    let mut others = all.filter(|other| {
        let facts = &other.facts;
        facts.workspace.as_ref() == Some(id) && facts.engine != sandbox.facts.engine
    });
    let older = others.find(|other| age(&other.facts) < age(&sandbox.facts))?;
    Some(older.facts.engine.clone())
}

/// The engine that has the workspace. When none of those that answer has it, one that does not
/// may: that is an error, as whoever takes it for missing makes a second one, or deletes nothing.
pub(crate) async fn holder<'a>(
    context: &'a Context,
    id: &WorkspaceId,
) -> Result<Option<&'a Arc<Provider>>, OrchestratorError> {
    let is_alone = context.providers.all().count() == 1;
    let mut unknown = None;
    for provider in context.providers.all() {
        let asking = provider.engine.has_workspace(id);
        let answer = match is_alone {
            true => asking.await,
            false => timeout(OTHERS_PATIENCE, asking).await.unwrap_or_else(|_| Err(late())),
        };
        match answer {
            Ok(true) => return Ok(Some(provider)),
            Ok(false) => {}
            Err(error) => {
                let engine = provider.name();
                tracing::warn!(%error, engine, workspace = %id, "it may have it, and does not say");
                unknown.get_or_insert(error);
            }
        }
    }
    unknown.map_or(Ok(None), |error| Err(error.into()))
}

fn late() -> EngineError {
    let text = format!("it did not say within {OTHERS_PATIENCE:?} which workspaces it keeps");
    EngineError::Unavailable(text)
}

/// What the engines keep, as far as they answer.
#[derive(Debug)]
pub struct KeptWorkspaces {
    /// Each with the name of its engine.
    pub known: Vec<(&'static str, WorkspaceInfo)>,
    /// Engines, other than the default one, that do not answer.
    pub unavailable: Vec<&'static str>,
}

pub(crate) async fn all(context: &Context) -> Result<KeptWorkspaces, OrchestratorError> {
    let mut kept = KeptWorkspaces { known: Vec::new(), unavailable: Vec::new() };
    for provider in context.providers.all() {
        let name = provider.name();
        match provider.engine.workspaces().await {
            Ok(its) => kept.known.extend(its.into_iter().map(|info| (name, info))),
            Err(error) if context.providers.is_default(provider) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, engine = name, "its kept workspaces are not known now");
                kept.unavailable.push(name);
            }
        }
    }
    Ok(kept)
}

/// The machine of a create that failed is gone: so is what was made for it, unless somebody else
/// has used it meanwhile.
pub(crate) async fn tidy(sandbox: &Sandbox) {
    let made = sandbox.makes_workspace.load(Ordering::Relaxed);
    let Some(workspace) = sandbox.facts.workspace.as_ref().filter(|_| made) else { return };
    if let Err(error) = sandbox.engine().remove_empty_workspace(workspace).await {
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
    let Some(provider) = holder(context, id).await? else { return Ok(false) };
    let removed = provider.engine.remove_workspace(id).await?;
    if removed {
        context.events.emit("workspace.removed", None, json!({ "workspace": id }));
    }
    Ok(removed)
}
