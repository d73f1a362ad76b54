//! The parts of an answer, as server-sent events in the AI SDK's own framing.

use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderName, HeaderValue};
use sandbank_chat::Part;
use tokio::sync::mpsc;

use crate::dialects::told::{self, EVENTS, SILENT_EVENT};
use crate::streams::StreamPermit;

const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// Whoever drops the answer ends the chat.
pub(super) fn answer(mut parts: mpsc::Receiver<Part>, permit: StreamPermit) -> Response {
    let parts = stream::poll_fn(move |context| parts.poll_recv(context));
    let events = parts.map(|part| {
        let json = serde_json::to_string(&part).expect("plain data");
        Bytes::from(format!("data: {json}\n\n"))
    });
    let events = events.chain(stream::iter([DONE]));
    let mut answer = told::answer(EVENTS, SILENT_EVENT, events, permit);
    let name = HeaderName::from_static("x-vercel-ai-ui-message-stream");
    answer.headers_mut().insert(name, HeaderValue::from_static("v1"));
    answer
}
