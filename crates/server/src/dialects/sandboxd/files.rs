//! Files in JSON, as sandboxd reads and writes them.

use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use sandbank_channel::{ByteRange, RunnerClient};
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::FaultCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::file_batch::{Batch, WriteBody};
use super::path_rule;
use super::reconnect::refused_as;
use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath, Whole};
use crate::limits::MAX_READ_JSON_BYTES;
use crate::reply::{Done, Reply};

/// Write files, all or none, making missing directories.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files:write", tag = "files",
    params(("id" = String, Path)), request_body = WriteBody,
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn write(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Whole(json): Whole,
) -> ApiResult<Reply<Done>> {
    let attached = app.orchestrator().attach(&id).await?;
    let batch = Batch::read(&json)?;
    drop(json);
    let batch = &batch;
    attached.run(|client| async move { client.write_many(batch.body()).await }).await?;
    Ok(Done::reply())
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PathQuery {
    /// Below the workspace.
    #[serde(default)]
    pub(super) path: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadReply {
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
}

/// Read a file of at most 32 MiB.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:read", tag = "files",
    params(("id" = String, Path), PathQuery),
    responses((status = 200, body = ReadReply), (status = "default", body = ErrorBody)))]
pub(super) async fn read(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Reply<ReadReply>> {
    let attached = app.orchestrator().attach(&id).await?;
    if query.path.is_empty() {
        return Err(ApiError::bad_request("path_required", "path is required."));
    }
    let path = path_rule::absolute(&query.path)?;
    // One byte more than allowed, so that a file that grows meanwhile is noticed.
    let range = ByteRange { offset: 0, length: Some(MAX_READ_JSON_BYTES + 1) };
    let opened = attached.run(|client| async move { client.read_file(path, range).await }).await;
    let mut download = match opened {
        Err(OrchestratorError::Channel(error)) if refused_as(&error, FaultCode::NotFound) => {
            return Ok(Reply(ReadReply { found: false, content_base64: None }));
        }
        other => other?,
    };
    if download.stat.size > MAX_READ_JSON_BYTES {
        return Err(too_long());
    }
    let mut content = Vec::with_capacity(usize::try_from(download.stat.size).unwrap_or(0));
    loop {
        match download.chunk().await {
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                let was = &download.stat;
                let look =
                    |client: RunnerClient| async move { client.has_changed(path, was).await };
                return Err(match attached.run(look).await {
                    Ok(true) => changed(),
                    Ok(false) | Err(_) => error.into(),
                });
            }
        }
        if content.len() as u64 > MAX_READ_JSON_BYTES {
            return Err(too_long());
        }
    }
    let content_base64 = Some(STANDARD.encode(content));
    Ok(Reply(ReadReply { found: true, content_base64 }))
}

fn changed() -> ApiError {
    let message = "the file changed while it was read";
    ApiError::new(StatusCode::CONFLICT, "file_changed", message).with_hint("read it again")
}

fn too_long() -> ApiError {
    let message = format!("the file has more than {MAX_READ_JSON_BYTES} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message)
        .with_hint("read it with GET …/files?path=, which streams and takes ranges")
}
