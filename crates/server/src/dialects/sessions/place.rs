//! Whose files a request is about: a session's, or a kept workspace's.

use sandbank_engine::{NetworkMode, WorkspaceId};
use sandbank_orchestrator::{Attached, CreateRequest, OrchestratorError};
use serde_json::Map;

use super::error;
use super::id::{SessionId, caretaker_key};
use super::session::find;
use crate::app::App;
use crate::dialects::sandboxd::limits;
use crate::error::{ApiError, ApiResult};
use crate::limits::CARETAKER_TTL;
use http::StatusCode;

pub(super) async fn of_session(app: &App, id: &SessionId) -> ApiResult<Attached> {
    let info = find(app, id).await?;
    let attached = app.orchestrator().attach(&info.id).await;
    attached.map_err(|error| error::of_session(id, error))
}

/// To look: one that is not there is not made.
pub(super) async fn of_workspace(app: &App, id: &WorkspaceId) -> ApiResult<Attached> {
    if !app.orchestrator().has_workspace(id).await? {
        let message = format!("workspace not found: {id}; writing to it makes it");
        return Err(ApiError::new(StatusCode::NOT_FOUND, "WORKSPACE_NOT_FOUND", message));
    }
    of_workspace_or_new(app, id).await
}

/// Through a sandbox that has it, where one runs: the quota of a caretaker would hold for it, too.
pub(super) async fn of_workspace_or_new(app: &App, id: &WorkspaceId) -> ApiResult<Attached> {
    if let Some(sandbox) = app.orchestrator().sandbox_with_workspace(id) {
        match app.orchestrator().attach(&sandbox).await {
            // It ended just now.
            Err(OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. }) => {}
            attached => return Ok(attached?),
        }
    }
    caretaker(app, id).await
}

async fn caretaker(app: &App, id: &WorkspaceId) -> ApiResult<Attached> {
    let settings = app.settings();
    // Nobody else can open it; one that is not there becomes the default one's.
    let has_it = app.orchestrator().workspace_engine(id).await?;
    let engine = app.orchestrator().engine_named(has_it)?;
    let enforces_quota = engine.capabilities().disk_quota;
    let mut limits = limits(&Map::new(), &settings.sandboxes, enforces_quota)?;
    if has_it.is_some() {
        // The one it has already: a caretaker's own would hold for it, too.
        limits.disk_bytes = app.orchestrator().workspace_quota(id).await?;
    }
    let request = CreateRequest {
        key: caretaker_key(id),
        engine: has_it.map(str::to_owned),
        image: settings.default_image(engine.name()).clone(),
        runtime: "caretaker".to_owned(),
        idle_ttl: Some(CARETAKER_TTL),
        max_lifetime: None,
        limits,
        network: NetworkMode::None,
        ports: Vec::new(),
        env: Default::default(),
        workspace: Some(id.clone()),
    };
    let made = app.orchestrator().create(request).await?;
    Ok(app.orchestrator().attach(&made.id).await?)
}
