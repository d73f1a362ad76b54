//! A file as JSON, written while it is read: nothing holds the whole of it.

use std::io;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream;
use http::header;
use sandbank_channel::{ByteRange, FileDownload};
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{FaultCode, FileKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{error, path};
use crate::dialects::sandboxd::reconnect::refused_as;
use crate::error::ApiResult;
use crate::limits::{DEFAULT_SESSION_READ_BYTES, MAX_SESSION_READ_BYTES};
use crate::reply::JSON;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReadQuery {
    /// Relative to `/workspace`, or absolute below it.
    #[serde(default)]
    path: String,
    /// 0 to 104 857 600; 0 or none is 10 485 760.
    #[param(minimum = 0, maximum = 104_857_600)]
    max_bytes: Option<u64>,
}

/// Only for the documentation: see [`answer`].
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReadFile)]
#[allow(dead_code, reason = "describes the answer, which is written piece by piece")]
pub(super) struct ReadView {
    /// As it was asked for.
    path: String,
    content_base64: String,
    /// The file has more than was read.
    truncated: bool,
}

pub(super) struct Wanted {
    asked: String,
    path: String,
    most: u64,
}

impl ReadQuery {
    pub(super) fn check(self) -> ApiResult<Wanted> {
        let most = match self.max_bytes.unwrap_or(0) {
            0 => DEFAULT_SESSION_READ_BYTES,
            most if most <= MAX_SESSION_READ_BYTES => most,
            _ => {
                let message = format!("max_bytes must be from 0 to {MAX_SESSION_READ_BYTES}");
                return Err(error::invalid(message));
            }
        };
        Ok(Wanted { path: path::file(&self.path)?, asked: self.path, most })
    }
}

/// `listing` says how a directory is looked at.
pub(super) async fn answer(
    attached: Attached,
    wanted: Wanted,
    listing: &str,
) -> ApiResult<Response> {
    let path = &wanted.path;
    let range = ByteRange { offset: 0, length: Some(wanted.most) };
    let opened = attached.run(|client| async move { client.read_file(path, range).await }).await;
    let file = match opened {
        Ok(file) => file,
        Err(error) if is_wrong_kind(&error) => {
            let stat = attached.run(|client| async move { client.stat(path).await }).await;
            let is_directory = stat.is_ok_and(|stat| stat.kind == FileKind::Directory);
            let shown: String = wanted.asked.chars().take(200).collect();
            return Err(match is_directory {
                true => error::invalid(format!("{shown:?} is a directory; {listing}")),
                false => error::invalid(format!("{shown:?} is not a regular file")),
            });
        }
        Err(error) => return Err(error::of_file(path, error)),
    };
    let asked = serde_json::to_string(&wanted.asked).expect("a text");
    let body = Content {
        left: file.stat.size.min(wanted.most),
        end: format!("\",\"truncated\":{}}}", file.stat.size > wanted.most),
        ready: Some(format!("{{\"path\":{asked},\"content_base64\":\"").into()),
        rest: BytesMut::new(),
        file: Some(file),
        _attached: attached,
    };
    let chunks = stream::unfold(body, |mut body| async move {
        let chunk = body.next().await.transpose()?;
        if chunk.is_err() {
            body.file = None;
        }
        Some((chunk, body))
    });
    Ok(([(header::CONTENT_TYPE, JSON)], Body::from_stream(chunks)).into_response())
}

fn is_wrong_kind(error: &OrchestratorError) -> bool {
    matches!(error, OrchestratorError::Channel(inner) if refused_as(inner, FaultCode::WrongKind))
}

struct Content {
    ready: Option<Bytes>,
    /// Bytes that do not fill a group of three yet.
    rest: BytesMut,
    left: u64,
    /// None once all of it is read.
    file: Option<FileDownload>,
    end: String,
    /// Keeps the sandbox busy while it is read.
    _attached: Attached,
}

impl Content {
    /// Exactly what was promised: a file that grows is cut, one that shrinks breaks the transfer off.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(ready) = self.ready.take() {
            return Ok(Some(ready));
        }
        loop {
            let Some(file) = &mut self.file else { return Ok(None) };
            if self.left == 0 {
                self.file = None;
                return Ok(Some((STANDARD.encode(&self.rest) + &self.end).into()));
            }
            let chunk = file.chunk().await.map_err(io::Error::other)?;
            let chunk = chunk.ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = (chunk.len() as u64).min(self.left);
            self.left -= size;
            self.rest.extend_from_slice(&chunk[..usize::try_from(size).unwrap_or(chunk.len())]);
            let whole = self.rest.len() - self.rest.len() % 3;
            if whole > 0 {
                let text = STANDARD.encode(&self.rest[..whole]);
                self.rest.advance(whole);
                return Ok(Some(text.into()));
            }
        }
    }
}
