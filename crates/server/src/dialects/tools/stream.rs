//! The updates of a call, as they come.

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use sandbank_tools::{Update, Updates};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::dialects::told::{self, EVENTS, SILENT_EVENT};
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
            Self::Sse => EVENTS,
        }
    }

    fn encode(self, kind: &str, record: &Value) -> Bytes {
        match self {
            Self::Ndjson => format!("{record}\n").into(),
            Self::Sse => format!("event: {kind}\ndata: {record}\n\n").into(),
        }
    }

    fn silence(self) -> &'static [u8] {
        match self {
            Self::Ndjson => b"\n",
            Self::Sse => SILENT_EVENT,
        }
    }
}

/// A call that is told of.
pub(super) struct Telling {
    pub(super) form: Form,
    pub(super) updates: Updates,
    pub(super) cancel: CancellationToken,
    pub(super) shutdown: Shutdown,
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let update = self.shutdown.cancelling(&self.cancel, self.updates.recv()).await?;
            let record = record(self.form, update);
            if record.is_some() {
                return record;
            }
        }
    }
}

/// Whoever drops the answer drops the updates, and that ends the call.
pub(super) fn answer(telling: Telling, permit: StreamPermit) -> Response {
    let form = telling.form;
    let records =
        stream::unfold(
            telling,
            |mut telling| async move { Some((telling.next().await?, telling)) },
        );
    told::answer(form.content_type(), form.silence(), records, permit)
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
