//! Whole files of text, and removal.

use axum::extract::State;
use http::StatusCode;
use sandbank_channel::{ByteRange, RunnerClient, full_body};
use sandbank_protocol::FaultCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::Fields;
use super::error::{Detail, refused};
use super::path;
use super::place::{Place, Refusal};
use super::query::Parameters;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_WORKSPACE_FILE_BYTES;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Content {
    content: String,
    path: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changed {
    success: bool,
    path: String,
}

/// Read a file of text.
#[utoipa::path(get, path = "/api/file", tag = "workspace", params(("path" = String, Query)),
    responses((status = 200, body = Content), (status = "default", body = Detail)))]
pub(super) async fn read(
    State(app): State<App>,
    parameters: Parameters,
) -> ApiResult<Reply<Content>> {
    let asked = parameters.required("path")?;
    let file = path::clean(asked)?;
    let place = Place::of(&app).await?;
    // One byte more than allowed, so that a file that grows meanwhile is noticed.
    let range = ByteRange { offset: 0, length: Some(MAX_WORKSPACE_FILE_BYTES + 1) };
    let wanted = file.as_str();
    let opened = place.run(|client| async move { client.read_file(wanted, range).await }).await;
    let mut download = opened.map_err(|refusal| about_file(asked, refusal))?;
    if download.stat.size > MAX_WORKSPACE_FILE_BYTES {
        return Err(too_large(asked));
    }
    let mut content = Vec::with_capacity(usize::try_from(download.stat.size).unwrap_or(0));
    loop {
        match download.chunk().await {
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                let was = &download.stat;
                let look =
                    |client: RunnerClient| async move { client.has_changed(wanted, was).await };
                return Err(match place.run(look).await {
                    Ok(true) => changed(asked),
                    Ok(false) | Err(_) => error.into(),
                });
            }
        }
        if content.len() as u64 > MAX_WORKSPACE_FILE_BYTES {
            return Err(too_large(asked));
        }
    }
    let content = String::from_utf8(content).map_err(|_| {
        let message = format!("File is not UTF-8 text: {asked}");
        refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_text", message)
    })?;
    Ok(Reply(Content { content, path: asked.to_owned() }))
}

/// Write a file of text, whole, making missing directories.
#[utoipa::path(put, path = "/api/file", tag = "workspace", params(("path" = String, Query)),
    request_body = Object,
    responses((status = 200, body = Changed), (status = "default", body = Detail)))]
pub(super) async fn write(
    State(app): State<App>,
    parameters: Parameters,
    fields: Fields,
) -> ApiResult<Reply<Changed>> {
    let asked = parameters.required("path")?;
    let content = fields.text("content")?;
    let file = path::clean(asked)?;
    if file == "." {
        return Err(is_directory(asked));
    }
    let place = Place::of(&app).await?;
    let (wanted, content) = (file.as_str(), bytes::Bytes::copy_from_slice(content.as_bytes()));
    let written = place.run(|client| {
        let body = full_body(content.clone());
        async move { client.write_file(wanted, None, body).await }
    });
    written.await.map_err(|refusal| about_file(asked, refusal))?;
    Ok(Reply(Changed { success: true, path: asked.to_owned() }))
}

/// Delete a file, or a directory with everything in it.
#[utoipa::path(delete, path = "/api/file", tag = "workspace", params(("path" = String, Query)),
    responses((status = 200, body = Changed), (status = "default", body = Detail)))]
pub(super) async fn remove(
    State(app): State<App>,
    parameters: Parameters,
) -> ApiResult<Reply<Changed>> {
    let asked = parameters.required("path")?;
    let file = path::clean(asked)?;
    if file == "." {
        let message = "The workspace itself cannot be deleted";
        return Err(ApiError::bad_request("is_root", message));
    }
    let place = Place::of(&app).await?;
    let removed = place.once(|client| async move { client.remove(&file, true).await }).await;
    removed.map_err(|refusal| about_file(asked, refusal))?;
    Ok(Reply(Changed { success: true, path: asked.to_owned() }))
}

/// In the original's words where it has any.
pub(super) fn about_file(asked: &str, refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Fault(FaultCode::NotFound, _) => not_found(asked),
        Refusal::Fault(FaultCode::OutsideWorkspace, _) => path::traversal(asked),
        Refusal::Fault(FaultCode::WrongKind, error) if error.message.contains("is a directory") => {
            is_directory(asked)
        }
        Refusal::Fault(FaultCode::WrongKind, _) => {
            let message = format!("Not a regular file: {asked}");
            refused(StatusCode::BAD_REQUEST, "wrong_kind", message)
        }
        other => other.into(),
    }
}

pub(super) fn not_found(asked: &str) -> ApiError {
    refused(StatusCode::NOT_FOUND, "not_found", format!("File not found: {asked}"))
}

fn is_directory(asked: &str) -> ApiError {
    refused(StatusCode::BAD_REQUEST, "wrong_kind", format!("Path is a directory: {asked}"))
}

fn changed(asked: &str) -> ApiError {
    let message = format!("File changed while it was read: {asked}");
    refused(StatusCode::CONFLICT, "file_changed", message).with_hint("read it again")
}

fn too_large(asked: &str) -> ApiError {
    let message = format!("File too large: {asked} has more than {MAX_WORKSPACE_FILE_BYTES} bytes");
    refused(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message)
}
