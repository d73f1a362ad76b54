//! A viewer of a terminal, as a client would write it: it counts what it sees, to come back.

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Bytes, Message};

pub struct Viewer {
    socket: WebSocketStream<TcpStream>,
    /// Number of the last output seen.
    pub seq: u64,
    /// Everything the program wrote, as far as it was sent as such.
    pub output: Vec<u8>,
    /// The next binary message paints a screen.
    painting: bool,
    /// What `attached` said.
    pub attached: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    Output(Bytes),
    /// Of a screen that was announced.
    Repaint(Bytes),
    Said(Value),
    Closed(Option<u16>),
}

impl Viewer {
    pub async fn open(url: &str, token: &str, path: &str) -> anyhow::Result<Self> {
        let address = url.strip_prefix("http://").context("the test server speaks http")?;
        let mut request = format!("ws://{address}{path}").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let stream = TcpStream::connect(address).await?;
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
        let mut viewer =
            Self { socket, seq: 0, output: Vec::new(), painting: false, attached: Value::Null };
        match viewer.next().await? {
            Seen::Said(attached) if attached["type"] == "attached" => {
                viewer.seq = attached["seq"].as_u64().context("attached without a number")?;
                viewer.attached = attached;
                Ok(viewer)
            }
            other => anyhow::bail!("it began with {other:?}"),
        }
    }

    pub async fn next(&mut self) -> anyhow::Result<Seen> {
        loop {
            let Some(message) = self.socket.next().await else { return Ok(Seen::Closed(None)) };
            match message? {
                Message::Binary(bytes) if self.painting => {
                    self.painting = false;
                    return Ok(Seen::Repaint(bytes));
                }
                Message::Binary(bytes) => {
                    self.seq += 1;
                    self.output.extend_from_slice(&bytes);
                    return Ok(Seen::Output(bytes));
                }
                Message::Text(text) => {
                    let said: Value = serde_json::from_str(text.as_str())?;
                    if said["type"] == "screen" || said["type"] == "lagged" {
                        self.painting = said["type"] == "screen";
                        self.seq = said["seq"].as_u64().context("a place without a number")?;
                    }
                    return Ok(Seen::Said(said));
                }
                Message::Close(frame) => {
                    return Ok(Seen::Closed(frame.map(|frame| frame.code.into())));
                }
                _ => {}
            }
        }
    }

    /// Until the program wrote this.
    pub async fn read_until(&mut self, text: &str) -> anyhow::Result<()> {
        while !self.output.windows(text.len()).any(|part| part == text.as_bytes()) {
            let seen = self.next().await?;
            if let Seen::Closed(code) = seen {
                let output = self.output.escape_ascii();
                anyhow::bail!("closed with {code:?} before {text:?}: {output}");
            }
        }
        Ok(())
    }

    /// What is said of this kind, whatever comes before it.
    pub async fn said(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            match self.next().await? {
                Seen::Said(said) if said["type"] == kind => return Ok(said),
                Seen::Closed(code) => anyhow::bail!("closed with {code:?} before {kind}"),
                _ => {}
            }
        }
    }

    /// The code it is closed with, whatever comes before.
    pub async fn closed(&mut self) -> anyhow::Result<Option<u16>> {
        loop {
            if let Seen::Closed(code) = self.next().await? {
                return Ok(code);
            }
        }
    }

    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::Binary(bytes.into())).await?)
    }

    pub async fn say(&mut self, value: Value) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::Text(value.to_string().into())).await?)
    }
}
