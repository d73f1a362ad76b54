//! Kept workspaces.

use axum::extract::State;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{KeptWorkspaces, OrchestratorError};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{self, SessionError};
use super::id::{WorkspacePath, caretaker_key};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::extract::is_hidden;
use crate::reply::{Done, Reply};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkspaceList {
    workspaces: Vec<WorkspaceView>,
    /// Engines, other than the default one, whose workspaces are not listed, because they do not
    /// answer; absent when all do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unavailable: Vec<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Workspace)]
pub(super) struct WorkspaceView {
    id: String,
    /// The engine whose sandboxes can have it.
    engine: &'static str,
    /// What it takes on disk.
    bytes: u64,
    /// What it may take; absent where nothing holds it to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_bytes: Option<u64>,
    /// Ids of the sandboxes that have it now.
    in_use_by: Vec<String>,
}

/// Every kept workspace.
#[utoipa::path(get, path = "/v1/workspaces", tag = "workspaces",
    responses((status = 200, body = WorkspaceList), (status = "default", body = SessionError)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
) -> ApiResult<Reply<WorkspaceList>> {
    let KeptWorkspaces { known, unavailable } = app.orchestrator().workspaces().await?;
    let is_shown = |id: &SandboxId| {
        let owner = app.orchestrator().ownership(id);
        !owner.is_some_and(|(key, _)| is_hidden(&app, &caller, &key))
    };
    let view = |(engine, info): (&'static str, sandbank_engine::WorkspaceInfo)| WorkspaceView {
        id: info.id.to_string(),
        engine,
        bytes: info.bytes,
        quota_bytes: info.quota_bytes,
        in_use_by: info.in_use_by.into_iter().filter(is_shown).map(Into::into).collect(),
    };
    let mut workspaces: Vec<_> = known.into_iter().map(view).collect();
    workspaces.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(Reply(WorkspaceList { workspaces, unavailable }))
}

/// Delete a workspace with all that is in it. Also true for one that is not there; refused while a
/// session has it.
#[utoipa::path(delete, path = "/v1/workspaces/{id}", tag = "workspaces",
    params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = SessionError)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    WorkspacePath(id): WorkspacePath,
) -> ApiResult<Reply<Done>> {
    if let Some(caretaker) = app.orchestrator().find_key(&caretaker_key(&id)).await?
        && !caretaker.state.is_over()
    {
        match app.orchestrator().stop(&caretaker.id, &caller.name).await {
            Ok(_) | Err(OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let removed = app.orchestrator().remove_workspace(&id).await;
    if removed.map_err(|error| error::of_workspace(&app, error))? {
        tracing::info!(workspace = %id, by = %caller.name, "workspace deleted");
    }
    Ok(Done::reply())
}
