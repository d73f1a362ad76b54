//! One connection to a published port.
//!
//! When there is nobody at the other end, a client that speaks HTTP is told so in HTTP; any other
//! one sees its connection close, which is all its protocol promises.

use rustix::net::sockopt;
use sandbank_channel::{ChannelError, Tunnel};
use sandbank_protocol::FaultCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::OrchestratorError;
use crate::limits::{
    KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, REFUSAL_PATIENCE, TUNNEL_BUFFER_BYTES,
};
use crate::sandbox::Sandbox;

pub(super) async fn serve(sandbox: &Sandbox, mut socket: TcpStream, port: u16) {
    let _ = socket.set_nodelay(true);
    if let Err(error) = probe_silent_peer(&socket) {
        tracing::debug!(sandbox = %sandbox.id(), port, %error, "a peer is not being probed");
    }
    let opened = async {
        let hold = sandbox.hold().await?;
        Ok::<_, OrchestratorError>((hold, tunnel(sandbox, port).await?))
    };
    match opened.await {
        Ok((_hold, mut tunnel)) => {
            let size = TUNNEL_BUFFER_BYTES;
            let copied = copy_bidirectional_with_sizes(&mut socket, &mut tunnel, size, size).await;
            if let Err(error) = copied {
                tracing::debug!(sandbox = %sandbox.id(), port, %error, "a port connection broke");
            }
        }
        Err(error) => {
            let text = match &error {
                OrchestratorError::Channel(error) if is_refused(error) => {
                    format!("Nothing listens on port {port} in the sandbox.\n")
                }
                error => format!("{error}\n"),
            };
            refuse(socket, "502 Bad Gateway", &text).await;
        }
    }
}

/// A peer that vanished must not keep the sandbox busy for ever.
fn probe_silent_peer(socket: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)
}

fn is_refused(error: &ChannelError) -> bool {
    matches!(error, ChannelError::Refused(fault) if fault.code == FaultCode::Refused)
}

pub(super) async fn refuse_crowded(socket: TcpStream, port: u16) {
    let text = format!("Port {port} of the sandbox has too many connections.\n");
    refuse(socket, "503 Service Unavailable\r\nRetry-After: 1", &text).await;
}

/// To a port as to a file: a broken channel is made anew once before it is an error.
async fn tunnel(sandbox: &Sandbox, port: u16) -> Result<Tunnel, OrchestratorError> {
    let channel = sandbox.channel_after(0).await?;
    match channel.client.tunnel(port).await {
        Err(error) if error.is_broken() => {
            let channel = sandbox.channel_after(channel.serial).await?;
            Ok(channel.client.tunnel(port).await?)
        }
        answer => Ok(answer?),
    }
}

async fn refuse(mut socket: TcpStream, status: &str, text: &str) {
    let mut first = [0u8; 16];
    let Ok(Ok(length)) = timeout(REFUSAL_PATIENCE, socket.read(&mut first)).await else { return };
    if !looks_like_http(&first[..length]) {
        return;
    }
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    if socket.write_all(answer.as_bytes()).await.is_ok() && socket.shutdown().await.is_ok() {
        // Closing with unread bytes resets the connection, and the answer with it.
        let mut rest = [0u8; 4096];
        let drain = async { while matches!(socket.read(&mut rest).await, Ok(1..)) {} };
        let _ = timeout(REFUSAL_PATIENCE, drain).await;
    }
}

fn looks_like_http(first: &[u8]) -> bool {
    const METHODS: [&[u8]; 8] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT "];
    METHODS.iter().any(|method| first.starts_with(method))
}

#[cfg(test)]
mod tests {
    use super::looks_like_http;

    #[test]
    fn only_a_request_line_looks_like_http() {
        assert!(looks_like_http(b"GET / HTTP/1.1\r\n"));
        assert!(looks_like_http(b"OPTIONS * HTTP/1"));
        for other in [&b""[..], b"\x16\x03\x01", b"SSH-2.0-", b"GETX", b"get / "] {
            assert!(!looks_like_http(other), "{other:?}");
        }
    }
}
