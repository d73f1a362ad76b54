//! Whole trees as tar archives, streamed both ways.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderValue, header};
use sandbank_channel::ArchiveDownload;
use sandbank_orchestrator::Attached;
use sandbank_protocol::Unpacked;
use serde::Serialize;
use utoipa::ToSchema;

use super::files::PathQuery;
use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath, Upload};
use crate::reply::Reply;
use crate::streams::StreamPermit;

/// What is sent, for as long as somebody reads it.
struct Relay {
    app: App,
    attached: Attached,
    archive: ArchiveDownload,
    _permit: StreamPermit,
}

/// Everything below a directory, or one file, as a tar archive with names relative to it. Sockets,
/// pipes, devices and what cannot be read are left out; the comment of the last header, a global
/// one, counts and names them: `{"entries","skipped","unreadable","changed"}`.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:archive", tag = "files",
    params(("id" = String, Path), PathQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/x-tar"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn pack(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Response> {
    let path = if query.path.is_empty() { "." } else { path_rule::any(&query.path)? };
    let permit = app.streams().open()?;
    let attached = app.orchestrator().attach(&id).await?;
    let archive = attached.run(|client| async move { client.archive(path).await }).await?;
    let relay = Relay { app, attached, archive, _permit: permit };
    let mut response = Body::from_stream(chunks(relay)).into_response();
    const INERT: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, INERT);
    Ok(response)
}

/// When anything but the archive's end ends it the transfer breaks off.
fn chunks(relay: Relay) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(Some(relay), |relay| async move {
        let mut relay = relay?;
        let next = tokio::select! {
            biased;
            next = relay.archive.chunk() => next.map_err(io::Error::other),
            cause = relay.attached.ended() => Err(io::Error::other(cause.to_string())),
            () = relay.app.shutdown().draining() => {
                Err(io::Error::other("the daemon is shutting down"))
            }
        };
        match next {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(relay))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Unpacked)]
pub(super) struct UnpackedView {
    entries: u64,
    /// Of files.
    bytes: u64,
}

/// Unpack a tar archive, plain or gzip, below a directory, which is made if it is missing. Nothing in
/// it leads out of there. An entry that is refused ends it and is named; what came before it stays.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files:archive", tag = "files",
    params(("id" = String, Path), PathQuery),
    request_body(content = Vec<u8>, content_type = "application/x-tar"),
    responses((status = 200, body = UnpackedView), (status = "default", body = ErrorBody)))]
pub(super) async fn unpack(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
    upload: Upload,
) -> ApiResult<Reply<UnpackedView>> {
    let path = if query.path.is_empty() { "." } else { path_rule::any(&query.path)? };
    let attached = app.orchestrator().attach(&id).await?;
    let (body, fault) = upload.into_parts();
    let Unpacked { entries, bytes } = fault.or(attached.unpack(path, body).await)?;
    Ok(Reply(UnpackedView { entries, bytes }))
}
