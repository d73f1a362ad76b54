//! Sandboxes: create or find, look at, pause, stop.

use axum::extract::State;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::OrchestratorError;
use serde::Serialize;
use utoipa::ToSchema;

use super::adjusted;
use super::create::{self, CreateBody, CreateReply};
use super::differences;
use super::post_mortem_view::PostMortemView;
use super::sandbox_view::SandboxView;
use super::stats_view::StatsView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Loose, SandboxPath, Segments, is_hidden};
use crate::reply::{Done, Reply};

/// Create a sandbox, or find the live one with this key.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes", request_body = CreateBody,
    responses((status = 200, body = CreateReply), (status = "default", body = ErrorBody)))]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Loose(body): Loose,
) -> ApiResult<Reply<CreateReply>> {
    let asked = create::read(&app, &body).await?;
    // What others keep is not for everybody who can reach the port, not by a sandbox's key either.
    let made = match caller.has_token {
        true => app.orchestrator().create(asked.clone()).await?,
        false => app.orchestrator().create_without_kept(asked.clone()).await?,
    };
    let limits = &asked.limits;
    tracing::info!(
        sandbox = %made.id, key = %asked.key, image = %asked.image, network = ?asked.network,
        created = made.created, source = ?made.source, by = %caller.name,
        cpu_millis = limits.cpu_millis, memory_bytes = limits.memory_bytes, pids = limits.pids,
        disk_bytes = limits.disk_bytes, "sandbox ready"
    );
    let mut warnings = create::FIELDS.warnings(&body);
    warnings.extend(adjusted::warnings(&body, &asked));
    if made.created {
        warnings.extend(adjusted::missing_image(&body, &asked));
    } else if let Some(has) = app.orchestrator().find_living(&made.id) {
        warnings.extend(differences::warnings(&body, &asked, &has));
    }
    Ok(Reply(CreateReply { warnings, ..made.into() }))
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
    let mut infos = app.orchestrator().list().await;
    infos.retain(|info| !is_hidden(&app, &caller, &info.key));
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
