//! One connection to a workspace service: to the addresses that its name had the first time.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sandbank_channel::ObstacleKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::RemoteTls;
use super::address::Address;
use crate::limits::{DIAL_PATIENCE, KEEPALIVE};
use crate::{PlaceError, tls};

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

pub(crate) struct Dialer {
    address: Address,
    tls: Option<TlsConnector>,
    /// A name that later leads elsewhere leads nowhere.
    pinned: OnceCell<Vec<SocketAddr>>,
}

impl Dialer {
    pub(crate) fn new(address: Address, trusted: &RemoteTls) -> io::Result<Self> {
        let tls = address.secure.then(|| tls::connector(&authorities(trusted)?)).transpose()?;
        if address.secure {
            tls::server_name(&address.host)?;
        }
        Ok(Self { address, tls, pinned: OnceCell::new() })
    }

    pub(crate) async fn dial(&self) -> Result<Box<dyn Wire>, PlaceError> {
        let dialed = tokio::time::timeout(DIAL_PATIENCE, self.try_dial()).await;
        match dialed {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(error)) => {
                let why = format!("{}: {error}", self.address.authority());
                Err(if tls::is_untrusted(&error) {
                    PlaceError::Untrusted(why)
                } else if tls::is_no_tls(&error) {
                    let message = "what answers there does not speak TLS";
                    PlaceError::obstacle(ObstacleKind::BadPath, message)
                } else {
                    PlaceError::Unreachable(why)
                })
            }
            Err(_) => Err(PlaceError::TimedOut(DIAL_PATIENCE)),
        }
    }

    async fn try_dial(&self) -> io::Result<Box<dyn Wire>> {
        let addresses = self.pinned.get_or_try_init(|| self.resolve()).await?;
        let stream = first_of(addresses).await?;
        stream.set_nodelay(true)?;
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        rustix::net::sockopt::set_tcp_keepidle(&stream, KEEPALIVE)?;
        let Some(connector) = &self.tls else { return Ok(Box::new(stream)) };
        let name = tls::server_name(&self.address.host)?;
        Ok(Box::new(connector.connect(name, stream).await?))
    }

    async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let found =
            tokio::net::lookup_host((self.address.host.as_str(), self.address.port)).await?;
        let found: Vec<SocketAddr> = found.collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its name has no address"));
        }
        Ok(found)
    }
}

async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let share: Duration = DIAL_PATIENCE / (addresses.len().min(8) as u32 + 1);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match tokio::time::timeout(share.max(DIAL_PATIENCE / 2), TcpStream::connect(address)).await
        {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

fn authorities(trusted: &RemoteTls) -> io::Result<PathBuf> {
    if let Some(path) = &trusted.authorities {
        return Ok(path.clone());
    }
    let found = SYSTEM_AUTHORITIES.into_iter().map(PathBuf::from).find(|path| path.exists());
    found.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "this system has no certificates of authorities")
    })
}
