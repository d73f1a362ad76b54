//! A command's output as NDJSON, from any record on.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde::Deserialize;
use utoipa::IntoParams;

use super::log_stream::LogStream;
use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{CommandPath, Query};
use crate::ndjson::Encoding;
use crate::reply::NDJSON;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Only records numbered above this one.
    #[serde(default)]
    pub(super) after: u64,
    /// Stay until the command has ended.
    #[serde(default = "yes")]
    pub(super) follow: bool,
    /// `base64` for the exact bytes.
    #[serde(default)]
    #[param(inline)]
    pub(super) encoding: Encoding,
    /// `records`, the only one there is.
    format: Option<String>,
}

fn yes() -> bool {
    true
}

/// Everything kept, then live, until the command has ended. Lines are
/// `{"stream":"stdout"|"stderr"|"pty","data","seq","timeMs"}` or `{"stream":"control","type"}`
/// with the types `dropped`, `ending` and `heartbeat`. A stream that breaks off is resumed with
/// `after` set to the last `seq`.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{commandId}/logs", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path), LogQuery),
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn logs(
    State(app): State<App>,
    path: CommandPath,
    Query(query): Query<LogQuery>,
) -> ApiResult<Response> {
    if query.format.as_deref().is_some_and(|format| format != "records") {
        return Err(ApiError::bad_request("bad_query", "the only format is records"));
    }
    let stream = LogStream::open(app, path, &query).await?;
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(stream.chunks())).into_response())
}
