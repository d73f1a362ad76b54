//! What everybody may ask: is it there, and what does it speak.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{App, openapi_json};
use crate::error::ErrorBody;
use crate::reply::{JSON, Reply};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    ok: bool,
    engine: &'static str,
    version: String,
}

/// Whether the daemon serves. Needs no token.
#[utoipa::path(get, path = "/v1/health", tag = "daemon",
    responses((status = 200, body = Health), (status = "default", body = ErrorBody)))]
pub(super) async fn health(State(app): State<App>) -> Reply<Health> {
    let engine = app.orchestrator().engine();
    Reply(Health { ok: true, engine: engine.name(), version: engine.version() })
}

/// This document. Needs no token.
#[utoipa::path(get, path = "/openapi.json", tag = "daemon",
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, JSON)], openapi_json().clone()).into_response()
}
