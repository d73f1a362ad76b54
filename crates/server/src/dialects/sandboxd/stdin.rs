//! Feeding a command, from any byte on.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::reconnect::command_error;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{CommandPath, Query, Upload};
use crate::reply::Reply;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StdinQuery {
    /// Where in the whole input this body starts; what was accepted before is skipped.
    #[serde(default)]
    offset: u64,
    /// Close stdin after this body.
    #[serde(default)]
    eof: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StdinReply {
    /// Where the next body must start.
    next_offset: u64,
    closed: bool,
}

/// Write to a command that was started with `"stdin":"open"` or a `pty`.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{commandId}/stdin", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path), StdinQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = StdinReply), (status = "default", body = ErrorBody)))]
pub(super) async fn write(
    State(app): State<App>,
    path: CommandPath,
    Query(query): Query<StdinQuery>,
    upload: Upload,
) -> ApiResult<Reply<StdinReply>> {
    let attached = app.orchestrator().attach(&path.sandbox).await?;
    let command = &path.command;
    attached
        .run(|client| async move { client.command(command).await })
        .await
        .map_err(command_error)?;
    let (body, fault) = upload.into_parts();
    let status = fault.or(attached.stdin(&path.command, query.offset, query.eof, body).await)?;
    Ok(Reply(StdinReply { next_offset: status.next_offset, closed: status.closed }))
}
