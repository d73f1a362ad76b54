//! A runner's lines of JSON as an answer of lines, checked on their way through.

use std::io;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header;
use sandbank_channel::RecordStream;
use sandbank_orchestrator::Attached;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::streams::StreamPermit;

/// What keeps the sandbox busy and counts the answer, for as long as somebody reads it.
struct Relay<T> {
    app: App,
    attached: Attached,
    records: RecordStream<T>,
    _permit: StreamPermit,
}

/// The answer. It ends with the runner's; when anything else ends it the transfer breaks off, so
/// that a part is never taken for the whole.
pub(crate) fn ndjson<T: DeserializeOwned + 'static>(
    app: App,
    permit: StreamPermit,
    attached: Attached,
    records: RecordStream<T>,
) -> Response {
    let relay = Relay { app, attached, records, _permit: permit };
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(lines(relay))).into_response()
}

fn lines<T: DeserializeOwned + 'static>(
    relay: Relay<T>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(Some(relay), |relay| async move {
        let mut relay = relay?;
        let next = tokio::select! {
            biased;
            next = relay.records.next() => next.map_err(io::Error::other),
            cause = relay.attached.ended() => Err(io::Error::other(cause.to_string())),
            () = relay.app.shutdown().draining() => {
                Err(io::Error::other("the daemon is shutting down"))
            }
        };
        match next {
            Ok(Some(records)) => Some((Ok(records.lines), Some(relay))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}
