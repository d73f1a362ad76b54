//! What a session uses.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{self, SessionError};
use super::id::SessionId;
use super::session::find;
use crate::app::App;
use crate::error::ApiResult;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionStats)]
pub(super) struct StatsView {
    memory_bytes: u64,
    memory_limit: u64,
    cpu_usage_usec: u64,
}

/// What a session uses right now. Looking does not extend its life.
#[utoipa::path(get, path = "/v1/sessions/{id}/stats", tag = "sessions",
    params(("id" = String, Path)),
    responses((status = 200, body = StatsView), (status = "default", body = SessionError)))]
pub(super) async fn stats(State(app): State<App>, id: SessionId) -> ApiResult<Reply<StatsView>> {
    let info = find(&app, &id).await?;
    let stats = app.orchestrator().stats(&info.id).await;
    let stats = stats.map_err(|error| error::of_session(&id, error))?;
    Ok(Reply(StatsView {
        memory_bytes: stats.machine.memory_bytes,
        memory_limit: info.limits.memory_bytes,
        cpu_usage_usec: stats.machine.cpu_usage_us,
    }))
}
