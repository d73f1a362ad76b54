//! An HTTP/1.1 client with kept-alive connections and nothing else, so that the figures are the
//! server's. Each caller has a connection to itself; idle ones are used again.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::limits;

pub(crate) struct Client {
    address: SocketAddr,
    token: String,
    idle: Mutex<Vec<SendRequest<Payload>>>,
}

/// An answer whose body is still to be read. Its connection is not used again.
pub(crate) struct Reply {
    body: Incoming,
    _connection: SendRequest<Payload>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        Self { address, token, idle: Mutex::default() }
    }

    /// The JSON of an answer that must be a success.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let exchange = async {
            let payload = body.map_or_else(Payload::empty, |value| Payload::json(&value));
            let (connection, response) = self.send(method.clone(), path, payload).await?;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            self.keep(connection);
            anyhow::ensure!(status.is_success(), "{status}: {}", text_of(&answer));
            if answer.is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_slice(&answer).context("the answer is not JSON")
        };
        let answer = within(limits::CALL, exchange).await;
        answer.with_context(|| format!("{method} {path}"))
    }

    /// Sends `payload` and leaves the answer's body to the caller.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<Reply> {
        let exchange = async {
            let (connection, response) = self.send(method.clone(), path, payload).await?;
            let status = response.status();
            let mut body = response.into_body();
            if !status.is_success() {
                let answer = body.collect().await?.to_bytes();
                anyhow::bail!("{status}: {}", text_of(&answer));
            }
            // An answer without a body is over already; hyper only says so when asked.
            if body.is_end_stream() {
                let _ = body.frame().await;
            }
            Ok(Reply { body, _connection: connection })
        };
        within(limits::TRANSFER, exchange).await.with_context(|| format!("{method} {path}"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<(SendRequest<Payload>, Response<Incoming>)> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.address.to_string())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(kind) = payload.content_type {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let request = request.body(payload)?;
        let mut connection = self.connection().await?;
        let response = connection.send_request(request).await?;
        Ok((connection, response))
    }

    /// An idle connection that the server has not closed, or a new one.
    async fn connection(&self) -> anyhow::Result<SendRequest<Payload>> {
        while let Some(mut idle) = self.take() {
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take(&self) -> Option<SendRequest<Payload>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, connection: SendRequest<Payload>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

impl Reply {
    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> anyhow::Result<Option<Bytes>> {
        while let Some(frame) = within(limits::TRANSFER, next_frame(&mut self.body)).await? {
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

async fn next_frame(body: &mut Incoming) -> anyhow::Result<Option<Frame<Bytes>>> {
    Ok(body.frame().await.transpose()?)
}

fn text_of(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).chars().take(500).collect()
}

pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => anyhow::bail!("no answer within {limit:?}"),
    }
}

/// A body of known length: one piece of memory, sent as often as it takes.
pub(crate) struct Payload {
    piece: Bytes,
    left: u64,
    content_type: Option<&'static str>,
}

impl Payload {
    fn json(value: &Value) -> Self {
        let piece = Bytes::from(value.to_string());
        let left = piece.len() as u64;
        Self { piece, left, content_type: Some("application/json") }
    }

    pub(crate) fn empty() -> Self {
        Self { piece: Bytes::new(), left: 0, content_type: None }
    }

    pub(crate) fn repeated(piece: Bytes, total: u64) -> Self {
        Self { piece, left: total, content_type: Some("application/octet-stream") }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let length = (self.piece.len() as u64).min(self.left);
        self.left -= length;
        Poll::Ready(Some(Ok(Frame::data(self.piece.slice(..length as usize)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_repeated_payload_has_exactly_the_length_it_promises() {
        let payload = Payload::repeated(Bytes::from_static(b"abcd"), 10);
        assert_eq!(payload.size_hint().exact(), Some(10));
        let sent = payload.collect().await.unwrap().to_bytes();
        assert_eq!(&sent[..], b"abcdabcdab");
    }

    #[test]
    fn an_empty_payload_is_over_at_once() {
        assert!(Payload::empty().is_end_stream());
    }
}
