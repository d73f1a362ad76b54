//! What the dialects of models share: answers that are told as they come, and who wants them so.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::limits::HEARTBEAT;
use crate::streams::StreamPermit;

pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A comment, which readers of events leave alone.
pub(super) const SILENT_EVENT: &[u8] = b": heartbeat\n\n";

/// `silence` keeps those in between from closing an answer in which nothing happens. Dropping the body,
/// as when the client leaves, drops the records.
pub(super) fn answer(
    content_type: HeaderValue,
    silence: &'static [u8],
    records: impl Stream<Item = Bytes> + Send + 'static,
    permit: StreamPermit,
) -> Response {
    let told = (records.boxed(), permit);
    let pieces = stream::unfold(told, move |(mut records, permit)| async move {
        let piece = match tokio::time::timeout(HEARTBEAT, records.next()).await {
            Ok(record) => record?,
            Err(_) => Bytes::from_static(silence),
        };
        Some((Ok::<_, Infallible>(piece), (records, permit)))
    });
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

/// The kinds of answers that a client takes, in its order, without their parameters.
pub(super) fn accepted(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds = values.flat_map(|value| value.split(','));
    kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_read_from_all_headers_in_their_order() {
        let mut headers = HeaderMap::new();
        for value in ["application/json;q=0.5, Text/Event-Stream ; x=1", "a/b"] {
            headers.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        let kinds: Vec<String> = accepted(&headers).collect();
        assert_eq!(kinds, ["application/json", "text/event-stream", "a/b"]);
        assert_eq!(accepted(&HeaderMap::new()).count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_happens_there_are_heartbeats_and_the_place_is_free_at_the_end() {
        let streams = crate::streams::Streams::new(1);
        let one = async {
            tokio::time::sleep(HEARTBEAT * 2 + HEARTBEAT / 2).await;
            Bytes::from_static(b"x")
        };
        let told = answer(EVENTS, b"-", stream::once(one), streams.open().unwrap());
        assert!(streams.open().is_err());
        let body = axum::body::to_bytes(told.into_body(), 100).await.unwrap();
        assert_eq!(body, "--x");
        assert!(streams.open().is_ok());
    }
}
