//! Files as raw bytes, streamed both ways; nothing is held in memory.
//!
//! What comes out is untrusted, so browsers are told to treat it as data and nothing else.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sandbank_channel::{ByteRange, FileDownload};
use sandbank_orchestrator::Attached;
use sandbank_protocol::{FileKind, FileStat};
use serde::Deserialize;
use utoipa::IntoParams;

use super::conditions::condition;
use super::file_tree::StatView;
use super::files::PathQuery;
use super::path_rule;
use super::range::{Grant, Wanted, is_known, range_applies};
use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath, Upload};
use crate::reply::{Done, Reply};

/// Read a file, or one range of it.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path), PathQuery, ("range" = Option<String>, Header)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304), (status = "default", body = ErrorBody)))]
pub(super) async fn download(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let path = path_rule::any(&query.path)?;
    let attached = app.orchestrator().attach(&id).await?;
    let wanted = Wanted::read(&headers);
    if wanted == Wanted::Whole {
        let range = ByteRange::default();
        let file =
            attached.run(|client| async move { client.read_file(path, range).await }).await?;
        return Ok(whole(&headers, attached, file));
    }
    // Of what a read would give: a link's own size says nothing.
    let nothing = ByteRange { offset: 0, length: Some(0) };
    let looked =
        attached.run(|client| async move { client.read_file(path, nothing).await }).await?;
    let stat = looked.stat.clone();
    drop(looked);
    let applies = range_applies(&headers, etag(&stat).as_ref());
    let grant = if applies { wanted.grant(stat.size) } else { Grant::Whole };
    let range = match grant {
        Grant::Unsatisfiable => return Ok(unsatisfiable(stat.size)),
        Grant::Whole => ByteRange::default(),
        Grant::Part { offset, length } => ByteRange { offset, length: Some(length) },
    };
    let file = attached.run(|client| async move { client.read_file(path, range).await }).await?;
    match grant {
        Grant::Part { offset, length } => part(attached, file, offset, length),
        _ => Ok(whole(&headers, attached, file)),
    }
}

/// Size and version of a file, as headers.
#[utoipa::path(head, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path), PathQuery),
    responses((status = 200), (status = "default", body = ErrorBody)))]
pub(super) async fn describe(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Response> {
    let path = path_rule::any(&query.path)?;
    let attached = app.orchestrator().attach(&id).await?;
    let stat = attached.run(|client| async move { client.stat(path).await }).await?;
    if stat.kind != FileKind::File {
        let message = "the path does not name a regular file";
        return Err(ApiError::new(StatusCode::CONFLICT, "wrong_kind", message));
    }
    let mut response = Body::empty().into_response();
    mark(response.headers_mut(), &stat, stat.size);
    Ok(response)
}

fn whole(headers: &HeaderMap, attached: Attached, file: FileDownload) -> Response {
    let stat = file.stat.clone();
    if let Some(etag) = etag(&stat).filter(|etag| is_known(headers, etag)) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        response.headers_mut().insert(header::ETAG, etag);
        return response;
    }
    let mut response = Body::from_stream(chunks(attached, file, stat.size)).into_response();
    mark(response.headers_mut(), &stat, stat.size);
    response
}

fn part(attached: Attached, file: FileDownload, offset: u64, length: u64) -> ApiResult<Response> {
    let stat = file.stat.clone();
    // The file may have shrunk since its size was asked for.
    let length = length.min(stat.size.saturating_sub(offset));
    if length == 0 {
        return Ok(unsatisfiable(stat.size));
    }
    let mut response = Body::from_stream(chunks(attached, file, length)).into_response();
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    mark(response.headers_mut(), &stat, length);
    let place = format!("bytes {offset}-{}/{}", offset + length - 1, stat.size);
    let place = HeaderValue::from_str(&place).map_err(|_| ApiError::internal())?;
    response.headers_mut().insert(header::CONTENT_RANGE, place);
    Ok(response)
}

fn unsatisfiable(size: u64) -> Response {
    let error = ApiError::new(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "range_not_satisfiable",
        format!("the file has {size} bytes, none of them in the range"),
    );
    let mut response = error.into_response();
    let size = HeaderValue::from_str(&format!("bytes */{size}")).expect("digits");
    response.headers_mut().insert(header::CONTENT_RANGE, size);
    response
}

fn mark(headers: &mut HeaderMap, stat: &FileStat, length: u64) {
    const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
    const INERT: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    headers.insert(header::CONTENT_TYPE, OCTETS);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(etag) = etag(stat) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, INERT);
}

/// None from a runner that does not tell versions: a guess could pass for another version.
fn etag(stat: &FileStat) -> Option<HeaderValue> {
    let tag = stat.tag?;
    Some(HeaderValue::from_str(&format!("\"{tag}\"")).expect("hexadecimal digits"))
}

/// Exactly `length` bytes: a file that grows is cut, one that shrinks breaks the transfer off.
fn chunks(
    attached: Attached,
    file: FileDownload,
    length: u64,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold((attached, file, length), |(attached, mut file, left)| async move {
        if left == 0 {
            return None;
        }
        let chunk = match file.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                return Some((Err(io::ErrorKind::UnexpectedEof.into()), (attached, file, 0)));
            }
            Err(error) => return Some((Err(io::Error::other(error)), (attached, file, 0))),
        };
        let size = (chunk.len() as u64).min(left);
        let chunk = chunk.slice(..usize::try_from(size).unwrap_or(chunk.len()));
        Some((Ok(chunk), (attached, file, left - size)))
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadQuery {
    /// Below the workspace.
    #[serde(default)]
    path: String,
    /// Permission bits in octal, like 0644.
    mode: Option<String>,
    /// Write into the existing file from here on, instead of replacing it.
    offset: Option<u64>,
}

/// Write a file: replaced as a whole when the body is complete, or in place from an offset. With
/// `If-Match` only in the place of that version, with `If-None-Match: *` only where nothing is; else
/// it is answered 412 and nothing has changed.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path), UploadQuery, ("if-match" = Option<String>, Header),
        ("if-none-match" = Option<String>, Header)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn upload(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<UploadQuery>,
    headers: HeaderMap,
    upload: Upload,
) -> ApiResult<Reply<StatView>> {
    let path = path_rule::any(&query.path)?;
    let condition = condition(&headers)?;
    let condition = condition.as_deref();
    let mode = query.mode.as_deref().map(octal).transpose()?;
    let attached = app.orchestrator().attach(&id).await?;
    let (body, fault) = upload.into_parts();
    let result = match query.offset {
        Some(offset) => attached.write_file_at_if(path, offset, condition, body).await,
        None => attached.write_file_if(path, mode, condition, body).await,
    };
    Ok(Reply(fault.or(result)?.into()))
}

pub(super) fn octal(text: &str) -> ApiResult<u32> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| {
        ApiError::bad_request("bad_mode", "mode must be permission bits in octal, like 0644")
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RemoveQuery {
    /// Below the workspace.
    #[serde(default)]
    path: String,
    /// Also a directory with everything in it.
    #[serde(default)]
    recursive: bool,
}

/// Delete a file or a directory, with `If-Match` only that version.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/files", tag = "files",
    params(("id" = String, Path), RemoveQuery, ("if-match" = Option<String>, Header)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn remove(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<RemoveQuery>,
    headers: HeaderMap,
) -> ApiResult<Reply<Done>> {
    let path = path_rule::any(&query.path)?;
    let condition = condition(&headers)?;
    let attached = app.orchestrator().attach(&id).await?;
    attached.remove_if(path, query.recursive, condition.as_deref()).await?;
    Ok(Done::reply())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_permission_bits() {
        assert_eq!(octal("0644").unwrap(), 0o644);
        assert_eq!(octal("755").unwrap(), 0o755);
        for bad in ["", "888", "4755", "-1", "0x1ff", "rw"] {
            assert!(octal(bad).is_err(), "{bad} was accepted");
        }
    }
}
