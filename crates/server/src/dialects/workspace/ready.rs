//! What whoever runs the daemon asks it: is it ready, and which version does it speak. Both are for
//! everybody, and there also where the workspace is off.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use sandbank_workspace::{API_VERSION, COMPATIBLE_FROM};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::Detail;
use crate::app::App;
use crate::readiness::{Check, Standing, is_ready};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// `ready` or `not_ready`.
    status: &'static str,
    checks: BTreeMap<&'static str, ReadyCheck>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReadyCheck {
    status: Standing,
    /// Without it the daemon is not ready.
    critical: bool,
    message: String,
}

/// Whether everything that the daemon depends on is there: 200, or 503.
#[utoipa::path(get, path = "/readyz", tag = "workspace",
    responses((status = 200, body = Ready), (status = 503, body = Ready),
        (status = "default", body = Detail)))]
pub(super) async fn readyz(State(app): State<App>) -> Response {
    let checks = app.readiness().checks(&app).await;
    let ready = is_ready(&checks) && !app.shutdown().is_draining();
    let (code, status) = match ready {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
    };
    let checks = checks.into_iter().map(view).collect();
    (code, Reply(Ready { status, checks })).into_response()
}

fn view(check: Check) -> (&'static str, ReadyCheck) {
    let Check { name, standing, critical, message } = check;
    (name, ReadyCheck { status: standing, critical, message })
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Version {
    version: String,
    /// The oldest that gets on with it.
    compatible_from: String,
}

/// The version of the workspace's API.
#[utoipa::path(get, path = "/__meta/version", tag = "workspace",
    responses((status = 200, body = Version), (status = "default", body = Detail)))]
pub(super) async fn version() -> Reply<Version> {
    Reply(Version {
        version: API_VERSION.to_string(),
        compatible_from: COMPATIBLE_FROM.to_string(),
    })
}
