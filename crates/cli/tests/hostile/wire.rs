//! Requests as bytes on a socket, because no HTTP library sends what these tests send.

use std::time::Duration;

use sandbank_test_support::TestDaemon;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server that has not closed a connection by then keeps it.
const PATIENCE: Duration = Duration::from_secs(20);

const ATTEMPTS: usize = 5;

pub(crate) fn port(daemon: &TestDaemon) -> u16 {
    daemon.url().rsplit(':').next().unwrap().parse().unwrap()
}

pub(crate) async fn connect(daemon: &TestDaemon) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port(daemon))).await.unwrap()
}

/// Everything the server says until it closes the connection by itself.
pub(crate) async fn until_closed(daemon: &TestDaemon, bytes: &[u8]) -> String {
    // Closing with unread bytes resets a connection, which may take the answer along.
    for _ in 0..ATTEMPTS {
        let mut stream = connect(daemon).await;
        let _ = stream.write_all(bytes).await;
        let answer = rest(&mut stream).await;
        if !answer.is_empty() {
            return answer;
        }
    }
    String::new()
}

/// Everything the server says to these bytes, which leave the connection open.
pub(crate) async fn exchange(daemon: &TestDaemon, bytes: &[u8]) -> String {
    let last = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: the-last-one\r\n\
                Connection: close\r\n\r\n";
    let answer = until_closed(daemon, &[bytes, last.as_bytes()].concat()).await;
    match answer.rfind("HTTP/1.") {
        Some(at) if answer[at..].contains("the-last-one") => answer[..at].to_owned(),
        _ => answer,
    }
}

pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer is as good as a close.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    let said = String::from_utf8_lossy(&answer).into_owned();
    assert!(read.is_ok(), "the connection stays open after {said:?}");
    said
}

pub(crate) fn status(answer: &str) -> u16 {
    let word = answer.split(' ').nth(1).unwrap_or_default();
    word.parse().unwrap_or_else(|_| panic!("no status in {answer:?}"))
}

pub(crate) fn answers(text: &str) -> usize {
    text.matches("HTTP/1.").count()
}

/// The JSON of an error, which has our fields whatever went wrong. One of the sessions' routes has
/// theirs; our code, and nothing else, is in its details.
pub(crate) fn envelope(text: &str) -> Value {
    let body: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text:?}"));
    if let Some(theirs) = body["error_code"].as_str() {
        assert!(body["message"].is_string(), "{body}");
        let code = body["details"]["code"].as_str().unwrap_or(theirs);
        return serde_json::json!({ "error": body["message"], "code": code.to_lowercase() });
    }
    // The workspace's clients know one field.
    if let Some(detail) = body.get("detail") {
        let said = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
        let code = if said.starts_with("Unauthorized") { "unauthorized" } else { "other" };
        return serde_json::json!({ "error": said, "code": code });
    }
    let complete = body["error"].is_string()
        && body["code"].is_string()
        && body["retryable"].is_boolean()
        && body["requestId"].is_string();
    assert!(complete, "{body}");
    body
}
