//! Whether the daemon serves, in Sandkasten's words, and in boring-ui's where its workspace is on.

use std::collections::BTreeMap;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::SessionError;
use crate::app::App;
use crate::config::WorkspaceMode;
use crate::error::{ApiError, ApiResult};
use crate::readiness::{Standing, all_healthy};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Healthz {
    /// `ok`; `degraded` where the workspace is on and a check is not healthy.
    status: &'static str,
    /// Only where the workspace is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<BTreeMap<&'static str, HealthCheck>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthCheck {
    status: Standing,
    message: String,
}

/// Whether the daemon serves and can keep what it is told. Needs no token.
#[utoipa::path(get, path = "/healthz", tag = "sessions",
    responses((status = 200, body = Healthz), (status = "default", body = SessionError)))]
pub(super) async fn healthz(State(app): State<App>) -> ApiResult<Reply<Healthz>> {
    if let Some(trouble) = app.data_dir().trouble() {
        let message = format!("the data directory cannot be used: {trouble}");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message));
    }
    if app.settings().workspace.mode == WorkspaceMode::Off {
        return Ok(Reply(Healthz { status: "ok", checks: None }));
    }
    let checks = app.readiness().checks(&app).await;
    let status = if all_healthy(&checks) { "ok" } else { "degraded" };
    let view = checks
        .into_iter()
        .map(|check| (check.name, HealthCheck { status: check.standing, message: check.message }));
    Ok(Reply(Healthz { status, checks: Some(view.collect()) }))
}
