//! `CONNECT 127.0.0.1:{port}`: a byte stream to whatever listens on that port in the sandbox.
//!
//! Only loopback addresses are ever dialled, and only by number: nothing a caller writes is
//! resolved. A server bound to a wildcard address answers on loopback, too.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::http::uri::Authority;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sandbank_protocol::{Fault, FaultCode};
use tokio::net::TcpStream;

use crate::http::{self, Counters, Open, RunnerBody};
use crate::limits::{TUNNEL_BUFFER_BYTES, TUNNEL_CONNECT_TIMEOUT};

pub(crate) async fn handle(
    request: Request<Incoming>,
    counters: &Rc<Counters>,
) -> Result<Response<RunnerBody>, Fault> {
    let port = port_of(request.uri().authority()).ok_or_else(|| {
        Fault::new(FaultCode::Invalid, "a tunnel leads to 127.0.0.1 and a port from 1 to 65535")
    })?;
    let server = dial(port).await?;
    let open = Open::tunnel(counters);
    tokio::task::spawn_local(async move {
        // An error here is the end of the tunnel; each side sees its stream close.
        let _ = relay(request, server).await;
        drop(open);
    });
    Ok(Response::new(http::empty()))
}

/// Strict: exactly one spelling of each port is accepted.
fn port_of(authority: Option<&Authority>) -> Option<u16> {
    let digits = authority?.as_str().strip_prefix("127.0.0.1:")?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

async fn dial(port: u16) -> Result<TcpStream, Fault> {
    let mut last = None;
    for address in [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ] {
        match tokio::time::timeout(TUNNEL_CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) if is_own_echo(&stream) => {}
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = last.or(Some(error)),
            Err(_) => last = last.or(Some(io::ErrorKind::TimedOut.into())),
        }
    }
    if last.as_ref().is_some_and(is_out_of_descriptors) {
        return Err(Fault::new(FaultCode::LimitReached, "too many tunnels and files are open"));
    }
    let reason = last.filter(|error| error.kind() != io::ErrorKind::ConnectionRefused);
    let reason = reason.map(|error| format!(" ({error})")).unwrap_or_default();
    let message = format!("nothing listens on port {port} in the sandbox{reason}");
    Err(Fault::new(FaultCode::Refused, message))
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// A closed port in the ephemeral range can be picked as the local port of the very connection
/// to it; TCP then connects the socket to itself.
fn is_own_echo(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

/// Copies both ways until both have ended; the end of one direction is passed on at once.
async fn relay(request: Request<Incoming>, mut server: TcpStream) -> io::Result<()> {
    let client = hyper::upgrade::on(request).await.map_err(io::Error::other)?;
    let mut client = TokioIo::new(client);
    let size = TUNNEL_BUFFER_BYTES;
    tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, size, size).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(authority: &str) -> Option<u16> {
        port_of(Some(&authority.parse().ok()?))
    }

    #[test]
    fn only_the_loopback_address_and_a_plain_port_are_accepted() {
        assert_eq!(port("127.0.0.1:1"), Some(1));
        assert_eq!(port("127.0.0.1:65535"), Some(65535));
        for refused in [
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:0",
            "127.0.0.1:080",
            "127.0.0.1:65536",
            "127.0.0.1:+80",
            "127.0.0.1:8o",
            "127.0.0.1.:80",
            "127.0.0.10:80",
            "127.1:80",
            "2130706433:80",
            "0.0.0.0:80",
            "10.0.0.1:80",
            "localhost:80",
            "[::1]:80",
            "user@127.0.0.1:80",
            "127.0.0.1:80@10.0.0.1:80",
            "169.254.169.254:80",
        ] {
            assert_eq!(port(refused), None, "{refused}");
        }
    }
}
