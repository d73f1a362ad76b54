//! A client of `/ws/pty` and `/ws/claude-stream`.

use std::time::Duration;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Pty {
    socket: WebSocketStream<TcpStream>,
    /// Of the last output that came with a number.
    pub seq: u64,
    /// All output since it was opened.
    pub output: String,
}

/// What a client is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum PtySeen {
    Frame(Value),
    /// With a code and a reason, where there was a close frame.
    Closed(u16, String),
}

impl Pty {
    pub async fn open(url: &str, token: &str, query: &str) -> anyhow::Result<Self> {
        let authorization = format!("Bearer {token}");
        Self::open_with(url, &[("authorization", &authorization)], query).await
    }

    pub async fn open_with(
        url: &str,
        headers: &[(&'static str, &str)],
        query: &str,
    ) -> anyhow::Result<Self> {
        Self::join(url, headers, &format!("/ws/pty?{query}")).await
    }

    /// A chat: its frames come one by one, as those of a terminal do.
    pub async fn chat(url: &str, token: &str, query: &str) -> anyhow::Result<Self> {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        Self::join(url, &headers, &format!("/ws/claude-stream?{query}")).await
    }

    async fn join(
        url: &str,
        headers: &[(&'static str, &str)],
        target: &str,
    ) -> anyhow::Result<Self> {
        let address = url.strip_prefix("http://").context("the test server speaks http")?;
        let mut request = format!("ws://{address}{target}").into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse()?);
        }
        let stream = TcpStream::connect(address).await?;
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
        Ok(Self { socket, seq: 0, output: String::new() })
    }

    /// The next frame that is no heartbeat.
    pub async fn next(&mut self) -> anyhow::Result<PtySeen> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next());
            let message = message.await.context("nothing came")?.context("the end, unsaid")?;
            match message? {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(text.as_str())?;
                    if frame["type"] == "output" {
                        self.output.push_str(frame["data"].as_str().context("no data")?);
                        self.seq = frame["seq"].as_u64().unwrap_or(self.seq);
                    }
                    return Ok(PtySeen::Frame(frame));
                }
                Message::Close(frame) => {
                    let frame = frame.context("a close without a code")?;
                    return Ok(PtySeen::Closed(frame.code.into(), frame.reason.to_string()));
                }
                _ => {}
            }
        }
    }

    /// A frame, not the end.
    pub async fn frame(&mut self) -> anyhow::Result<Value> {
        match self.next().await? {
            PtySeen::Frame(frame) => Ok(frame),
            closed => anyhow::bail!("{closed:?} after {:?}", self.output),
        }
    }

    /// The next frame of this type, whatever comes before it.
    pub async fn said(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            let frame = self.frame().await.with_context(|| format!("waiting for {kind}"))?;
            if frame["type"] == kind {
                return Ok(frame);
            }
        }
    }

    /// Until the output has this in it.
    pub async fn read_until(&mut self, text: &str) -> anyhow::Result<()> {
        let mut from = 0;
        while !self.output[self.output.floor_char_boundary(from)..].contains(text) {
            from = self.output.len().saturating_sub(text.len());
            self.frame().await.with_context(|| format!("waiting for {text:?}"))?;
        }
        Ok(())
    }

    /// The code it is closed with, whatever comes before.
    pub async fn closed(&mut self) -> anyhow::Result<(u16, String)> {
        loop {
            if let PtySeen::Closed(code, reason) = self.next().await? {
                return Ok((code, reason));
            }
        }
    }

    pub async fn say(&mut self, frame: Value) -> anyhow::Result<()> {
        self.raw(&frame.to_string()).await
    }

    pub async fn input(&mut self, data: &str) -> anyhow::Result<()> {
        self.say(json!({ "type": "input", "data": data })).await
    }

    /// A text frame as it is.
    pub async fn raw(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::text(text)).await?)
    }
}
