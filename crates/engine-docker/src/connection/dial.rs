//! One connection to the engine, by whatever way leads there.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_rustls::client::TlsStream;

use super::address::{Address, SshTarget};
use super::tls;
use crate::limits::DIAL_DEADLINE;

pub(crate) struct Dialer {
    address: Address,
    tls: Option<tls::Connector>,
}

pub(crate) enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Ssh(Box<SshPipe>),
}

/// `docker system dial-stdio` on the other side, as the Docker CLI reaches it.
pub(crate) struct SshPipe {
    output: ChildStdout,
    /// None once it is closed, which nothing but its drop does.
    input: Option<ChildStdin>,
    /// Is killed when this is dropped.
    _ssh: Child,
}

impl Dialer {
    pub(crate) fn new(address: Address) -> io::Result<Arc<Self>> {
        let tls = match &address {
            Address::Tls { host, files, .. } => Some(tls::Connector::new(host, files)?),
            _ => None,
        };
        Ok(Arc::new(Self { address, tls }))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) async fn dial(&self) -> io::Result<Wire> {
        let dialed = tokio::time::timeout(DIAL_DEADLINE, self.try_dial()).await;
        dialed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn try_dial(&self) -> io::Result<Wire> {
        match &self.address {
            Address::Unix(path) => UnixStream::connect(path).await.map(Wire::Unix),
            Address::Tcp { host, port } => tcp(host, *port).await.map(Wire::Tcp),
            Address::Tls { host, port, .. } => {
                let stream = tcp(host, *port).await?;
                let connector = self.tls.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
                Ok(Wire::Tls(Box::new(connector.connect(stream).await?)))
            }
            Address::Ssh(target) => ssh(target).map(|pipe| Wire::Ssh(Box::new(pipe))),
        }
    }
}

/// An engine that vanishes without a word is noticed by the kernel.
const KEEPALIVE: Duration = Duration::from_secs(30);

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(&stream, KEEPALIVE)?;
    Ok(stream)
}

fn ssh(target: &SshTarget) -> io::Result<SshPipe> {
    let mut command = Command::new("ssh");
    command.args(["-T", "-o", "ConnectTimeout=10", "-o", "BatchMode=yes"]);
    if let Some(user) = &target.user {
        command.args(["-l", user]);
    }
    if let Some(port) = target.port {
        command.args(["-p", &port.to_string()]);
    }
    command.args(["--", &target.host, "docker"]);
    if let Some(socket) = &target.socket {
        command.args(["--host", &format!("unix://{socket}")]);
    }
    command.args(["system", "dial-stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(output), Some(input)) => Ok(SshPipe { output, input: Some(input), _ssh: child }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

impl SshPipe {
    fn input(&mut self) -> io::Result<&mut ChildStdin> {
        self.input.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Ssh(pipe) => Pin::new(&mut pipe.output).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Ssh(pipe) => Pin::new(pipe.input()?).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Ssh(pipe) => Pin::new(pipe.input()?).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Ssh(pipe) => pipe.input.as_ref().is_some_and(AsyncWrite::is_write_vectored),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Ssh(pipe) => Pin::new(pipe.input()?).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Ssh(pipe) => {
                pipe.input = None;
                Poll::Ready(Ok(()))
            }
        }
    }
}
