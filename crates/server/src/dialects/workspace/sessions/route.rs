//! The sessions there are.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::super::error::Detail;
use super::super::place::Place;
use super::SessionView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct SessionList {
    sessions: Vec<SessionView>,
}

/// The caller's terminals and chats that run.
#[utoipa::path(get, path = "/api/sessions", tag = "workspace_sessions",
    responses((status = 200, body = SessionList), (status = "default", body = Detail)))]
pub(in super::super) async fn list(
    State(app): State<App>,
    caller: Caller,
) -> ApiResult<Reply<SessionList>> {
    let place = Place::of(&app).await?;
    let sessions = app.workspace_sessions().list(&app, &place, &caller.name).await?;
    Ok(Reply(SessionList { sessions }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct NewSession {
    session_id: String,
}

/// A name for a session that is to come; nothing is made.
#[utoipa::path(post, path = "/api/sessions", tag = "workspace_sessions",
    responses((status = 200, body = NewSession), (status = "default", body = Detail)))]
pub(in super::super) async fn create(State(app): State<App>) -> ApiResult<Reply<NewSession>> {
    Place::check(&app)?;
    Ok(Reply(NewSession { session_id: Uuid::new_v4().to_string() }))
}
