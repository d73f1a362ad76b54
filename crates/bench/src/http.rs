//! An HTTP/1.1 client with kept-alive connections and nothing else, so that the figures are the
//! server's. Each caller has a connection to itself; idle ones are used again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

/// Where a server listens.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

pub(crate) struct Client {
    address: Address,
    /// None where the server asks for none.
    token: Option<String>,
    idle: Mutex<Vec<SendRequest<Payload>>>,
}

/// A connection that no longer speaks HTTP.
pub(crate) type Raw = TokioIo<hyper::upgrade::Upgraded>;

/// An answer whose body is still to be read. Its connection is not used again.
pub(crate) struct Reply {
    body: Incoming,
    _connection: SendRequest<Payload>,
}

/// The server would not.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    said: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.status, self.said)
    }
}

impl std::error::Error for Refused {}

/// Whether something is already as it was to be, in the server's eyes.
pub(crate) fn is_conflict(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|refused: &Refused| refused.status == StatusCode::CONFLICT)
}

impl Client {
    pub(crate) fn new(address: Address, token: Option<String>) -> Self {
        Self { address, token, idle: Mutex::default() }
    }

    /// The JSON of an answer that must be a success.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let payload = body.map_or_else(Payload::empty, |value| Payload::json(&value));
        self.exchange(method, path, payload).await
    }

    /// Sends bytes as they are, for an answer that only must be a success.
    pub(crate) async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        bytes: Bytes,
    ) -> anyhow::Result<()> {
        let length = bytes.len() as u64;
        self.exchange(method, path, Payload::repeated(bytes, length)).await.map(drop)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<Value> {
        let exchange = async {
            let (connection, response) = self.send(method.clone(), path, payload).await?;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            self.keep(connection);
            if !status.is_success() {
                return Err(Refused { status, said: text_of(&answer) }.into());
            }
            if answer.is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_slice(&answer).context("the answer is not JSON")
        };
        within(limits::CALL, exchange).await.with_context(|| format!("{method} {path}"))
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

    /// Asks for a connection without HTTP, and is given its two directions.
    pub(crate) async fn upgrade(&self, path: &str, body: &Value) -> anyhow::Result<Raw> {
        let exchange = async {
            let mut request = self.request(Method::POST, path, Payload::json(body))?;
            let headers = request.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("tcp"));
            let response = self.connect().await?.send_request(request).await?;
            let status = response.status();
            anyhow::ensure!(status == StatusCode::SWITCHING_PROTOCOLS, "{status}");
            Ok(TokioIo::new(hyper::upgrade::on(response).await?))
        };
        within(limits::CALL, exchange).await.with_context(|| format!("POST {path}"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<(SendRequest<Payload>, Response<Incoming>)> {
        let request = self.request(method, path, payload)?;
        let mut connection = self.connection().await?;
        let response = connection.send_request(request).await?;
        Ok((connection, response))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
    ) -> anyhow::Result<Request<Payload>> {
        let host = match &self.address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(kind) = payload.content_type {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        Ok(request.body(payload)?)
    }

    /// An idle connection that the server has not closed, or a new one.
    async fn connection(&self) -> anyhow::Result<SendRequest<Payload>> {
        while let Some(mut idle) = self.take() {
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        self.connect().await
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Payload>> {
        match &self.address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                handshake(stream).await
            }
            Address::Unix(path) => handshake(UnixStream::connect(path).await?).await,
        }
    }

    fn take(&self) -> Option<SendRequest<Payload>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, connection: SendRequest<Payload>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> anyhow::Result<SendRequest<Payload>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
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
    pub(crate) fn json(value: &Value) -> Self {
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
