//! One connection to the engine, by whatever way leads there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio_rustls::client::TlsStream;

use super::address::Address;
use super::ssh::{self, SshPipe};
use super::tls;
use crate::limits::{DIAL_DEADLINE, SSH_DIALS};

pub(crate) struct Dialer {
    address: Address,
    tls: Option<tls::Connector>,
    /// Of connections by ssh that have not answered yet.
    turns: Arc<Semaphore>,
}

pub(crate) enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Ssh(Box<SshPipe>),
}

impl Dialer {
    pub(crate) fn new(address: Address) -> io::Result<Arc<Self>> {
        let tls = match &address {
            Address::Tls { host, files, .. } => Some(tls::Connector::new(host, files)?),
            _ => None,
        };
        let turns = Arc::new(Semaphore::new(SSH_DIALS));
        Ok(Arc::new(Self { address, tls, turns }))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) async fn dial(&self) -> io::Result<Wire> {
        if let Address::Ssh(target) = &self.address {
            let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(io::Error::other)?;
            return ssh::dial(target, turn).map(|pipe| Wire::Ssh(Box::new(pipe)));
        }
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
            Address::Ssh(_) => Err(io::ErrorKind::InvalidInput.into()),
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
            Self::Ssh(pipe) => pipe.poll_read(cx, buf),
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
            Self::Ssh(pipe) => pipe.is_write_vectored(),
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
                pipe.close_input();
                Poll::Ready(Ok(()))
            }
        }
    }
}
