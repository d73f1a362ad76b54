//! The parts of an answer, as server-sent events in the AI SDK's own framing.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use sandbank_chat::Part;
use tokio::sync::mpsc;

use crate::limits::HEARTBEAT;
use crate::streams::StreamPermit;

const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");
/// Keeps those in between from closing a silent stream.
const SILENCE: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// Dropping the body, as when the client leaves, drops the parts, and that ends the chat.
pub(super) fn answer(parts: mpsc::Receiver<Part>, permit: StreamPermit) -> Response {
    let events = stream::unfold(Some((parts, permit)), |state| async move {
        let (mut parts, permit) = state?;
        let event = match tokio::time::timeout(HEARTBEAT, parts.recv()).await {
            Ok(Some(part)) => {
                let json = serde_json::to_string(&part).expect("plain data");
                Bytes::from(format!("data: {json}\n\n"))
            }
            Ok(None) => return Some((Ok::<_, Infallible>(DONE), None)),
            Err(_) => SILENCE,
        };
        Some((Ok(event), Some((parts, permit))))
    });
    let fixed = HeaderValue::from_static;
    let headers = [
        (header::CONTENT_TYPE, fixed("text/event-stream")),
        (header::CACHE_CONTROL, fixed("no-cache")),
        (HeaderName::from_static("x-vercel-ai-ui-message-stream"), fixed("v1")),
        (HeaderName::from_static("x-accel-buffering"), fixed("no")),
    ];
    (headers, Body::from_stream(events)).into_response()
}
