//! Files of a session's workspace.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sandbank_channel::full_body;
use sandbank_orchestrator::Attached;
use serde::Deserialize;
use utoipa::ToSchema;

use super::error::{self, SessionError};
use super::id::SessionId;
use super::read::{ReadQuery, ReadView};
use super::{path, place, read};
use crate::app::App;
use crate::error::ApiResult;
use crate::extract::{Query, Whole, bad_json};
use crate::reply::{Done, Reply};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SessionWriteFile)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteBody<'a> {
    /// Relative to `/workspace`, or absolute below it.
    #[serde(borrow)]
    path: Cow<'a, str>,
    /// Either this or `content_base64`.
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content_base64: Option<Cow<'a, str>>,
}

/// Write a file as a whole, making missing directories.
#[utoipa::path(post, path = "/v1/sessions/{id}/fs/write", tag = "sessions",
    params(("id" = String, Path)), request_body = WriteBody<'static>,
    responses((status = 200, body = Done), (status = "default", body = SessionError)))]
pub(super) async fn write(
    State(app): State<App>,
    id: SessionId,
    Whole(json): Whole,
) -> ApiResult<Reply<Done>> {
    let (path, content) = checked(&json)?;
    write_one(&place::of_session(&app, &id).await?, &path, content).await
}

/// Where and what, from the body.
pub(super) fn checked(json: &[u8]) -> ApiResult<(String, Bytes)> {
    let body: WriteBody<'_> = serde_json::from_slice(json).map_err(|error| bad_json(&error))?;
    Ok((path::file(&body.path)?, content(body.text, body.content_base64)?))
}

pub(super) async fn write_one(
    attached: &Attached,
    path: &str,
    content: Bytes,
) -> ApiResult<Reply<Done>> {
    let content = &content;
    let call = |client: sandbank_channel::RunnerClient| async move {
        client.write_file(path, None, full_body(content.clone())).await
    };
    attached.run(call).await.map_err(|error| error::of_file(path, error))?;
    Ok(Done::reply())
}

/// One of the two; where both are there, the one that is not empty. Both empty is an empty file.
fn content(text: Option<Cow<'_, str>>, base64: Option<Cow<'_, str>>) -> ApiResult<Bytes> {
    let has = |text: &Option<Cow<'_, str>>| text.as_ref().is_some_and(|text| !text.is_empty());
    match (text, base64) {
        (None, None) => Err(error::invalid("text or content_base64 is required")),
        (text, base64) if has(&text) && has(&base64) => {
            Err(error::invalid("only one of text and content_base64 may be given"))
        }
        (_, Some(base64)) if !base64.is_empty() => {
            let bytes = STANDARD.decode(base64.as_bytes());
            let bytes = bytes.map_err(|error| {
                error::invalid(format!("content_base64 is not base64: {error}"))
            })?;
            Ok(bytes.into())
        }
        (text, _) => Ok(text.map(Cow::into_owned).unwrap_or_default().into()),
    }
}

/// Read a file, or its beginning.
#[utoipa::path(get, path = "/v1/sessions/{id}/fs/read", tag = "sessions",
    params(("id" = String, Path), ReadQuery),
    responses((status = 200, body = ReadView), (status = "default", body = SessionError)))]
pub(super) async fn read(
    State(app): State<App>,
    id: SessionId,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Response> {
    let wanted = query.check()?;
    let listing = "list it with POST /v1/sessions/{id}/exec and {\"cmd\":\"ls -la\"}";
    read::answer(place::of_session(&app, &id).await?, wanted, listing).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_content_is_taken_and_it_may_be_empty() {
        let read = |json: &str| checked(json.as_bytes()).map(|(_, content)| content);
        assert_eq!(read(r#"{"path":"a","text":"hi"}"#).unwrap(), "hi");
        assert_eq!(read(r#"{"path":"a","content_base64":"AP8="}"#).unwrap(), &b"\0\xff"[..]);
        assert_eq!(read(r#"{"path":"a","text":""}"#).unwrap(), "");
        assert_eq!(read(r#"{"path":"a","content_base64":""}"#).unwrap(), "");
        assert_eq!(read(r#"{"path":"a","text":"","content_base64":"aGk="}"#).unwrap(), "hi");
        for bad in [
            r#"{"path":"a"}"#,
            r#"{"path":"a","text":"x","content_base64":"aGk="}"#,
            r#"{"path":"a","content_base64":"!"}"#,
            r#"{"path":"../a","text":"x"}"#,
            r#"{"text":"x"}"#,
            "[]",
            "",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
