//! What everybody may ask: is it there, and what does it speak.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{App, openapi_json};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::limits::RETRY_SOON;
use crate::reply::{JSON, Reply};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    ok: bool,
    /// What makes sandboxes, unless their create names another of `engines`.
    engine: &'static str,
    engines: Vec<&'static str>,
    /// The daemon's own. Kernels and engines are told to those with a token only, by the doctor.
    version: &'static str,
}

/// Whether the daemon serves, can keep what it is told, and its engine answers. Needs no token.
#[utoipa::path(get, path = "/v1/health", tag = "daemon",
    responses((status = 200, body = Health), (status = "default", body = ErrorBody)))]
pub(super) async fn health(State(app): State<App>) -> ApiResult<Reply<Health>> {
    if let Some(trouble) = app.data_dir().trouble() {
        let message = format!("the data directory cannot be used: {trouble}");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "data_dir_unusable", message)
            .with_hint("bring it back, or stop the server and start it with another"));
    }
    let engine = app.orchestrator().engine();
    // A workspace elsewhere does without.
    if engine.silent().is_some() && app.workspace_place().is_none() {
        let (status, code) = (StatusCode::SERVICE_UNAVAILABLE, "engine_unavailable");
        let message = format!("the engine {} does not answer", engine.name());
        return Err(ApiError::overloaded(status, code, message, RETRY_SOON)
            .with_hint("`sandbank doctor` says why; it is used again as soon as it answers"));
    }
    let engine = engine.name();
    let engines = app.orchestrator().engines().map(|engine| engine.name()).collect();
    Ok(Reply(Health { ok: true, engine, engines, version: env!("CARGO_PKG_VERSION") }))
}

/// This document. Needs no token.
#[utoipa::path(get, path = "/openapi.json", tag = "daemon",
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, JSON)], openapi_json().clone()).into_response()
}
