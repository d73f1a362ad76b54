//! The two kinds of fake runner: one that speaks HTTP/2 properly and lies in its answers, and one
//! that writes frames by hand.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_protocol::Hello;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

pub(crate) const HELLO: &str =
    r#"{"protocol":1,"runner_version":"x","epoch":"e","started_at_ms":1,"workspace":"/workspace"}"#;

pub(crate) fn full(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(Full::new(text.into()).boxed())
}

/// Says hello honestly and answers everything else with `answer`.
pub(crate) async fn liar<F>(answer: F) -> RunnerClient
where
    F: Fn(&str) -> Response<Body> + Send + Sync + 'static,
{
    let honest = move |path: &str| if path == "/hello" { full(HELLO) } else { answer(path) };
    greeted(honest).await.unwrap().0
}

/// Answers everything with `answer`, the greeting too.
pub(crate) async fn greeted<F>(answer: F) -> Result<(RunnerClient, Hello), ChannelError>
where
    F: Fn(&str) -> Response<Body> + Send + Sync + 'static,
{
    let (near, far) = tokio::io::duplex(64 << 10);
    let answer = Arc::new(answer);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(answer(request.uri().path())) }
    });
    tokio::spawn(
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(far), service),
    );
    RunnerClient::connect(near).await
}

/// Writes `bytes` whatever it is told, reads and forgets, and then stays silent or hangs up.
pub(crate) fn scripted(bytes: Vec<u8>, hang_up: bool) -> DuplexStream {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (mut from, mut to) = tokio::io::split(&mut far);
        let read = async {
            let mut sink = [0; 4096];
            while matches!(from.read(&mut sink).await, Ok(1..)) {}
        };
        let write = async {
            let _ = to.write_all(&bytes).await;
            if !hang_up {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! { () = read => {}, () = write => {} }
    });
    near
}

/// Settings first, and `bytes` once the first request is there to be answered.
pub(crate) fn answering(bytes: Vec<u8>) -> DuplexStream {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        far.write_all(&frame(SETTINGS, 0, 0, b"")).await?;
        let mut preface = [0; 24];
        far.read_exact(&mut preface).await?;
        loop {
            let mut head = [0; 9];
            far.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            far.read_exact(&mut payload).await?;
            if head[3] == HEADERS {
                break;
            }
        }
        let (mut from, mut to) = tokio::io::split(far);
        let drain = async { tokio::io::copy(&mut from, &mut tokio::io::sink()).await };
        let write = async {
            let _ = to.write_all(&bytes).await;
            std::future::pending::<()>().await
        };
        tokio::select! { _ = drain => {}, () = write => {} }
        Ok::<_, std::io::Error>(())
    });
    near
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// `:status: 200` in HPACK's static table.
pub(crate) const STATUS_200: &[u8] = &[0x88];

/// One HTTP/2 frame with the length it really has.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    claimed(payload.len() as u32, kind, flags, stream, payload)
}

/// One with the length it says it has.
pub(crate) fn claimed(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// An answer's head on the first stream, followed by `rest`.
pub(crate) fn begun(rest: Vec<Vec<u8>>) -> Vec<u8> {
    let mut out = frame(HEADERS, END_HEADERS, 1, STATUS_200);
    out.extend(rest.concat());
    out
}
