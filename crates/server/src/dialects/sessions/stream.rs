//! A command of a session, its output sent as the program writes it.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};

use super::clean::Cleaner;
use super::error::SessionError;
use super::exec::ExecBody;
use super::id::SessionId;
use super::script::{Piece, Script};
use super::sse;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::extract::Strict;
use crate::limits::SESSION_CHUNK_BYTES;
use crate::streams::StreamPermit;
use crate::unix_time::now_ms;

/// Run a command in the session's shell and get its output as it is written: `chunk` events, then
/// `done`, or `error` for what goes wrong after the start, a timeout among it. Chunks are never cut
/// inside a character; newlines at the end stay.
#[utoipa::path(post, path = "/v1/sessions/{id}/exec/stream", tag = "sessions",
    params(("id" = String, Path)), request_body = ExecBody,
    responses((status = 200, body = sse::EventView, content_type = "text/event-stream"),
        (status = "default", body = SessionError)))]
pub(super) async fn exec_stream(
    State(app): State<App>,
    caller: Caller,
    id: SessionId,
    Strict(body): Strict<ExecBody>,
) -> ApiResult<Response> {
    let (text, timeout, raw) = body.check(&app)?;
    let permit = app.streams().open()?;
    let script = Script::start(app, id, caller, text, timeout, None).await?;
    let events = Events {
        script: Some(script),
        cleaner: (!raw).then(Cleaner::default),
        ready: VecDeque::new(),
        truncated: false,
        _permit: permit,
    };
    let events = stream::unfold(events, |mut events| async move {
        let event = events.next().await?;
        Some((Ok::<_, Infallible>(event), events))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

struct Events {
    /// None once all is said.
    script: Option<Script>,
    cleaner: Option<Cleaner>,
    ready: VecDeque<Bytes>,
    truncated: bool,
    _permit: StreamPermit,
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let piece = self.script.as_mut()?.next().await;
            match piece {
                Ok(Piece::Output(data)) => self.chunk(&data),
                Ok(Piece::Dropped) => self.truncated = true,
                Ok(Piece::Silence) => return Some(Bytes::from_static(sse::SILENCE)),
                Ok(Piece::Ended(ending)) => {
                    let outcome = self.script.take()?.outcome(ending).await;
                    return Some(match outcome {
                        Ok(outcome) => sse::done(&outcome, self.truncated),
                        Err(error) => failed(&error),
                    });
                }
                Err(error) => {
                    self.script = None;
                    return Some(failed(&error));
                }
            }
        }
    }

    fn chunk(&mut self, data: &[u8]) {
        let mut text = String::from_utf8_lossy(data).into_owned();
        if let Some(cleaner) = &mut self.cleaner {
            text = cleaner.push(&text);
        }
        let timestamp = now_ms();
        for chunk in sse::pieces(&text, SESSION_CHUNK_BYTES) {
            self.ready.push_back(sse::Event::Chunk { chunk, timestamp }.encode());
        }
    }
}

fn failed(error: &ApiError) -> Bytes {
    tracing::debug!(code = error.code, "a streamed command failed");
    sse::error(error)
}
