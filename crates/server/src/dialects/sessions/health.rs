//! Whether the daemon serves, in Sandkasten's words.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::SessionError;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Healthz {
    /// `ok`.
    status: &'static str,
}

/// Whether the daemon serves and can keep what it is told. Needs no token.
#[utoipa::path(get, path = "/healthz", tag = "sessions",
    responses((status = 200, body = Healthz), (status = "default", body = SessionError)))]
pub(super) async fn healthz(State(app): State<App>) -> ApiResult<Reply<Healthz>> {
    match app.data_dir().trouble() {
        None => Ok(Reply(Healthz { status: "ok" })),
        Some(trouble) => {
            let message = format!("the data directory cannot be used: {trouble}");
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", message))
        }
    }
}
