//! The updates of a call, as they come.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use sandbank_tools::{Update, Updates};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::limits::HEARTBEAT;
use crate::reply::NDJSON;
use crate::shutdown::Shutdown;
use crate::streams::StreamPermit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Ndjson,
    Sse,
}

impl Form {
    fn content_type(self) -> HeaderValue {
        match self {
            Self::Ndjson => NDJSON,
            Self::Sse => HeaderValue::from_static("text/event-stream"),
        }
    }

    fn encode(self, kind: &str, record: &Value) -> Bytes {
        match self {
            Self::Ndjson => format!("{record}\n").into(),
            Self::Sse => format!("event: {kind}\ndata: {record}\n\n").into(),
        }
    }

    /// Keeps those in between from closing a silent stream.
    fn silence(self) -> Bytes {
        match self {
            Self::Ndjson => Bytes::from_static(b"\n"),
            Self::Sse => Bytes::from_static(b": heartbeat\n\n"),
        }
    }
}

/// A call that is told of.
pub(super) struct Telling {
    pub(super) form: Form,
    pub(super) updates: Updates,
    pub(super) cancel: CancellationToken,
    pub(super) shutdown: Shutdown,
    pub(super) _permit: StreamPermit,
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let update = tokio::time::timeout(HEARTBEAT, self.updates.recv());
            let record = match self.shutdown.cancelling(&self.cancel, update).await {
                Ok(update) => record(self.form, update?),
                Err(_) => Some(self.form.silence()),
            };
            if record.is_some() {
                return record;
            }
        }
    }
}

/// Dropping the body, as when the client leaves, drops the updates, and that ends the call.
pub(super) fn answer(telling: Telling) -> Response {
    let content_type = telling.form.content_type();
    let records = stream::unfold(telling, |mut telling| async move {
        let record = telling.next().await?;
        Some((Ok::<_, Infallible>(record), telling))
    });
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(records)).into_response()
}

fn record(form: Form, update: Update) -> Option<Bytes> {
    let (kind, record) = match update {
        // What follows says it.
        Update::Allowed => return None,
        Update::Progress(output) | Update::Asked(output) => {
            ("progress", json!({ "type": "progress", "output": output }))
        }
        Update::Preparing(line) => ("preparing", json!({ "type": "preparing", "message": line })),
        Update::Done(output) => ("done", json!({ "type": "done", "output": output })),
        Update::Failed(error) => (
            "failed",
            json!({ "type": "failed", "error": error.to_string(), "code": error.code() }),
        ),
    };
    Some(form.encode(kind, &record))
}
