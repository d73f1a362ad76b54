//! Sessions: make, look at, end.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use sandbank_orchestrator::{
    AcquireSource, CreateRequest, Created, OrchestratorError, SandboxInfo,
};
use serde::Deserialize;
use serde_json::Map;
use utoipa::ToSchema;

use super::error::{self, SessionError};
use super::id::{SessionId, workspace_id};
use super::view::SessionView;
use super::{cwd, image, path, script};
use crate::app::App;
use crate::auth::Caller;
use crate::dialects::reserved_keys;
use crate::dialects::sandboxd::limits;
use crate::error::{ApiError, ApiResult};
use crate::extract::Once;
use crate::limits::{MAX_LISTED_SESSIONS, SESSION_TTL_SECONDS};
use crate::reply::{Done, Reply};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CreateSession)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateBody {
    /// `base`, `python`, `node`, or an imported image.
    image: Option<String>,
    /// 0 to 86 400; 0 or none is the server's own.
    #[schema(minimum = 0, maximum = 86_400)]
    ttl_seconds: Option<u64>,
    /// A workspace that is kept when the session ends; made when it is not there.
    workspace_id: Option<String>,
}

/// Make a session.
#[utoipa::path(post, path = "/v1/sessions", tag = "sessions", request_body = CreateBody,
    responses((status = 201, body = SessionView), (status = "default", body = SessionError)))]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Once(body): Once<CreateBody>,
) -> ApiResult<Response> {
    let (id, made) = make(&app, &body).await?;
    let info = app.orchestrator().recall(&made.id).await;
    let info = info.map_err(|error| error::of_session(&id, error))?;
    tracing::info!(
        session = %id, sandbox = %made.id, image = %info.image, source = ?made.source,
        by = %caller.name, "session ready"
    );
    script::begin(&app, &made.id);
    let mut view = SessionView::new(&id, &info, path::ROOT.to_owned());
    let (source, detail) = match made.source {
        AcquireSource::Pool => ("pool", "a prepared machine was there"),
        AcquireSource::Cold => ("cold", "made for this session"),
    };
    (view.acquire_source, view.acquire_detail) = (Some(source), Some(detail));
    Ok((StatusCode::CREATED, Reply(view)).into_response())
}

async fn make(app: &App, body: &CreateBody) -> ApiResult<(SessionId, Created)> {
    let settings = app.settings();
    let ttl = body.ttl_seconds.unwrap_or(0);
    if !SESSION_TTL_SECONDS.contains(&ttl) {
        let most = SESSION_TTL_SECONDS.end();
        return Err(error::invalid(format!("ttl_seconds must be from 0 to {most}")));
    }
    let asked = body.image.as_deref().filter(|name| !name.is_empty());
    let (image, runtime) = image::resolve(app, asked).await?;
    let workspace = body.workspace_id.as_deref().filter(|name| !name.is_empty());
    let workspace = match workspace {
        Some(text) => Some(workspace_id(app, text).await?),
        None => None,
    };
    let enforces_quota = app.orchestrator().engine().capabilities().disk_quota;
    let limits = limits(&Map::new(), &settings.sandboxes, enforces_quota)?;
    loop {
        let id = SessionId::random();
        let request = CreateRequest {
            key: id.key(),
            engine: None,
            image: image.clone(),
            runtime: runtime.clone(),
            idle_ttl: Some(if ttl == 0 { settings.sessions.ttl } else { Duration::from_secs(ttl) }),
            max_lifetime: None,
            limits: limits.clone(),
            network: settings.sessions.network,
            ports: Vec::new(),
            env: Default::default(),
            workspace: workspace.clone(),
        };
        let made = app.orchestrator().create(request).await?;
        // Another session has this id already, once in a very long while.
        if made.created {
            return Ok((id, made));
        }
    }
}

/// Sessions, newest first, also those that have ended and are still known.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions",
    responses((status = 200, body = Vec<SessionView>), (status = "default", body = SessionError)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<Vec<SessionView>>> {
    let infos =
        app.orchestrator().with_key_prefix(reserved_keys::SESSION, MAX_LISTED_SESSIONS).await?;
    let cwds = cwd::of_each(&app, &infos).await;
    let views = infos.iter().zip(cwds).filter_map(|(info, cwd)| {
        let id = SessionId::of(&info.key)?;
        Some(SessionView::new(&id, info, cwd))
    });
    Ok(Reply(views.collect()))
}

/// One session.
#[utoipa::path(get, path = "/v1/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 200, body = SessionView), (status = "default", body = SessionError)))]
pub(super) async fn inspect(
    State(app): State<App>,
    id: SessionId,
) -> ApiResult<Reply<SessionView>> {
    let known = find(&app, &id).await?;
    let info = app.orchestrator().inspect(&known.id).await;
    let info = info.map_err(|error| error::of_session(&id, error))?;
    let cwd = cwd::of(&app, &info).await;
    Ok(Reply(SessionView::new(&id, &info, cwd)))
}

/// End a session. Also true for one that has ended.
#[utoipa::path(delete, path = "/v1/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = SessionError)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    id: SessionId,
) -> ApiResult<Reply<Done>> {
    let info = find(&app, &id).await?;
    match app.orchestrator().stop(&info.id, &caller.name).await {
        Ok(_) | Err(OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    tracing::info!(session = %id, sandbox = %info.id, by = %caller.name, "session ended");
    Ok(Done::reply())
}

/// The session's sandbox, living or not.
pub(super) async fn find(app: &App, id: &SessionId) -> Result<SandboxInfo, ApiError> {
    let found = app.orchestrator().find_key(&id.key()).await?;
    found.ok_or_else(|| error::session_not_found(id))
}
