//! Sandboxes: create or find, look at, pause, stop.

use axum::extract::State;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::OrchestratorError;
use serde::Serialize;
use utoipa::ToSchema;

use super::create::{self, CreateBody, CreateReply};
use super::post_mortem_view::PostMortemView;
use super::sandbox_view::SandboxView;
use super::stats_view::StatsView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Loose, SandboxPath, Segments};
use crate::reply::{Done, Reply};

/// Create a sandbox, or find the live one with this key.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes", request_body = CreateBody,
    responses((status = 200, body = CreateReply), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Loose(body): Loose,
) -> ApiResult<Reply<CreateReply>> {
    let request = create::read(&app, &body).await?;
    if request.workspace.is_some() && !caller.has_token {
        return Err(kept_needs_token());
    }
    let (key, image, limits) = (request.key.clone(), request.image.clone(), request.limits.clone());
    let network = request.network;
    let made = app.orchestrator().create(request).await?;
    if !made.created && !caller.has_token {
        // Found by its key, it may have a workspace that this caller could not have named.
        let found = app.orchestrator().inspect(&made.id).await?;
        if found.workspace.is_some() {
            return Err(kept_needs_token());
        }
    }
    tracing::info!(
        sandbox = %made.id, %key, %image, ?network, created = made.created, source = ?made.source,
        by = %caller.name, cpu_millis = limits.cpu_millis, memory_bytes = limits.memory_bytes, pids = limits.pids,
        disk_bytes = limits.disk_bytes, "sandbox ready"
    );
    Ok(Reply(made.into()))
}

/// What others keep is not for everybody who can reach the port.
fn kept_needs_token() -> ApiError {
    ApiError::unauthorized().with_hint(
        "a kept workspace is opened with a token only, on a loopback address too: send the one \
         from the data directory's `token` file as `Authorization: Bearer <token>`, or leave \
         workspace out",
    )
}

/// Stop and delete a sandbox with its workspace. Also true for one that is not there.
#[utoipa::path(post, path = "/v1/sandboxes/{id}:stop", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn stop(
    State(app): State<App>,
    caller: Caller,
    segments: Segments,
) -> ApiResult<Reply<Done>> {
    if let Ok(id) = segments.get("id")?.parse::<SandboxId>() {
        end(&app, &caller, &id).await?;
    }
    Ok(Done::reply())
}

/// Stop and delete a sandbox with its workspace.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<Done>> {
    if end(&app, &caller, &id).await? {
        Ok(Done::reply())
    } else {
        Err(ApiError::sandbox_not_found())
    }
}

async fn end(app: &App, caller: &Caller, id: &SandboxId) -> ApiResult<bool> {
    let was_there = match app.orchestrator().stop(id, &caller.name).await {
        Err(OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. }) => false,
        other => other?,
    };
    if was_there {
        tracing::info!(sandbox = %id, by = %caller.name, "sandbox stopped");
    }
    Ok(was_there)
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SandboxList {
    sandboxes: Vec<SandboxView>,
}

/// Every live sandbox.
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes",
    responses((status = 200, body = SandboxList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Reply<SandboxList> {
    let infos = app.orchestrator().list().await;
    let view = |info| SandboxView::new(&app, &caller, info);
    Reply(SandboxList { sandboxes: infos.into_iter().map(view).collect() })
}

/// One sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = SandboxView), (status = "default", body = ErrorBody)))]
pub(super) async fn inspect(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<SandboxView>> {
    let info = app.orchestrator().inspect(&id).await?;
    Ok(Reply(SandboxView::new(&app, &caller, info)))
}

/// Stop every process where it stands; nothing is lost.
#[utoipa::path(post, path = "/v1/sandboxes/{id}:pause", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn pause(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<Done>> {
    app.orchestrator().pause(&id).await?;
    Ok(Done::reply())
}

/// Let a paused sandbox go on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}:resume", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn resume(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<Done>> {
    app.orchestrator().resume(&id).await?;
    Ok(Done::reply())
}

/// What a sandbox uses right now.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/stats", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = StatsView), (status = "default", body = ErrorBody)))]
pub(super) async fn stats(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<StatsView>> {
    Ok(Reply(app.orchestrator().stats(&id).await?.into()))
}

/// Why a sandbox ended, and what it did last.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/post-mortem", tag = "sandboxes",
    params(("id" = String, Path)),
    responses((status = 200, body = PostMortemView), (status = "default", body = ErrorBody)))]
pub(super) async fn post_mortem(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<PostMortemView>> {
    Ok(Reply(app.orchestrator().post_mortem(&id).await?.into()))
}
