//! A client that joins a terminal and then says nothing any more, not even that it is there.

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const CLOSE: u8 = 8;

pub(crate) struct Mute {
    socket: BufReader<TcpStream>,
}

impl Mute {
    /// `name` is what the daemon's log calls the request.
    pub(crate) async fn join(
        url: &str,
        token: &str,
        query: &str,
        name: &str,
    ) -> anyhow::Result<Self> {
        let address = url.strip_prefix("http://").context("the daemon speaks http")?;
        let mut socket = BufReader::new(TcpStream::connect(address).await?);
        let head = format!(
            "GET /ws/pty?{query} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             x-request-id: {name}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.get_mut().write_all(head.as_bytes()).await?;
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        anyhow::ensure!(line.contains(" 101 "), "{line}");
        while line != "\r\n" {
            line.clear();
            socket.read_line(&mut line).await?;
        }
        Ok(Self { socket })
    }

    /// Reads all there is, answers no ping, and says which code it is closed with.
    pub(crate) async fn closed(&mut self) -> anyhow::Result<u16> {
        loop {
            let first = self.socket.read_u8().await.context("the end, unsaid")?;
            let length = match self.socket.read_u8().await? {
                126 => u64::from(self.socket.read_u16().await?),
                127 => self.socket.read_u64().await?,
                length => length.into(),
            };
            let mut body = Vec::new();
            (&mut self.socket).take(length).read_to_end(&mut body).await?;
            if first & 0xf == CLOSE {
                let code = body.first_chunk().context("a close without a code")?;
                return Ok(u16::from_be_bytes(*code));
            }
        }
    }
}
