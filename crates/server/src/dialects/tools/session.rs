//! The sandbox behind a session's tools.

use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::admission::Asking;
use super::{enabled, error};
use crate::app::App;
use crate::error::ErrorBody;
use crate::reply::Done;

/// End the session's sandbox with all that is in it; the next call has a new one.
#[utoipa::path(delete, path = "/api/tools/session", tag = "tools",
    params(("x-sandbank-session" = Option<String>, Header)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn reset(State(app): State<App>, asking: Asking) -> Response {
    if let Err(gate) = asking.is_admitted(&app).await {
        return error::closed(&gate).into_response();
    }
    match app.tools().reset(asking.session()).await {
        Ok(()) => (enabled(true), Done::reply()).into_response(),
        Err(wrong) => (enabled(true), error::of(&wrong)).into_response(),
    }
}
