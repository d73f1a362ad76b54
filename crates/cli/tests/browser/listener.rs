//! What the page says about itself, on a port of this machine.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub(crate) struct Listener {
    url: String,
    heard: mpsc::UnboundedReceiver<Value>,
}

impl Listener {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let (tell, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tell = tell.clone();
                let service = service_fn(move |request| take(request, tell.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { url, heard })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn next(&mut self, limit: Duration) -> anyhow::Result<Value> {
        let next = tokio::time::timeout(limit, self.heard.recv()).await;
        next.context("the page said nothing")?.context("the listener has ended")
    }
}

async fn take(
    request: hyper::Request<Incoming>,
    tell: mpsc::UnboundedSender<Value>,
) -> Result<hyper::Response<Empty<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    if let Some(said) = body.ok().and_then(|body| serde_json::from_slice(&body).ok()) {
        let _ = tell.send(said);
    }
    Ok(hyper::Response::new(Empty::new()))
}
