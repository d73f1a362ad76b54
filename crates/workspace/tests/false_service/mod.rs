//! What may answer in the place of a workspace service, and a wire to a real one that can be cut.

#![allow(dead_code, reason = "each test file uses a part")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

/// Stands in every false answer.
pub(crate) const PRIVATE: &str = "upstream-private";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Says {
    /// A proxy or something else altogether.
    Status(u16),
    /// To itself, so that following it would be seen.
    Redirect,
    Version(&'static str),
    TooMuch,
    HelloThenTooMuch,
    /// Accepts and never answers.
    Nothing,
}

pub(crate) struct FalseService {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl FalseService {
    pub(crate) async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, address, says, count.clone()));
            }
        });
        Self { address, asked, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for FalseService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, own: SocketAddr, says: Says, asked: Arc<AtomicUsize>) {
    let service = service_fn(move |request: Request<Incoming>| {
        asked.fetch_add(1, Ordering::SeqCst);
        async move {
            if matches!(says, Says::Nothing) {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(answer(&request, own, says))
        }
    });
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

fn answer(request: &Request<Incoming>, own: SocketAddr, says: Says) -> Response<Full<Bytes>> {
    let text = |text: String| Full::new(Bytes::from(text));
    let builder = Response::builder();
    let too_much = || text(format!("{{\"{PRIVATE}\":\"{}\"}}", "x".repeat(20 << 20)));
    match says {
        Says::Status(status) => builder.status(status).body(text(PRIVATE.to_owned())),
        Says::Redirect => {
            let to = format!("http://{own}/hello?{PRIVATE}");
            builder.status(307).header("location", to).body(text(PRIVATE.to_owned()))
        }
        Says::Version(version) => {
            builder.header("x-workspace-api-version", version).body(text(hello()))
        }
        Says::TooMuch => builder.body(too_much()),
        Says::HelloThenTooMuch => {
            let first = request.uri().path() == "/hello";
            let body = if first { text(hello()) } else { too_much() };
            builder.header("x-workspace-api-version", "0.1.0").body(body)
        }
        Says::Nothing => unreachable!("it never answers"),
    }
    .unwrap()
}

fn hello() -> String {
    serde_json::json!({
        "protocol": sandbank_protocol::PROTOCOL_VERSION,
        "runner_version": "0.1.0",
        "epoch": "e",
        "started_at_ms": 1,
        "workspace": "/w",
    })
    .to_string()
}

/// Passes bytes on until it is cut; then again for those that come later.
pub(crate) struct Wire {
    near: SocketAddr,
    cut: broadcast::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Wire {
    pub(crate) async fn to(far: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = listener.local_addr().unwrap();
        let (cut, _) = broadcast::channel(1);
        let cutting = cut.clone();
        let task = tokio::spawn(async move {
            loop {
                let (mut here, _) = listener.accept().await.unwrap();
                let mut cut = cutting.subscribe();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(far).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.recv() => {}
                    }
                });
            }
        });
        Self { near, cut, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.near)
    }

    pub(crate) fn cut(&self) {
        let _ = self.cut.send(());
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}
