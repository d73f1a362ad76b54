//! The daemon's way onto the link.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::codec::Nonce;
use super::link::Link;
use crate::limits::OPEN_TIMEOUT;

/// Opens the link over a fresh attachment. What comes back is clean both ways; it fails with
/// `ConnectionAborted` once somebody else opens the link, and from then on nothing is written.
pub async fn open<S>(stream: S) -> io::Result<Link<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let nonce = Nonce::new(random);
    let mut link = Link::new(stream);
    match timeout(OPEN_TIMEOUT, link.open(nonce)).await {
        Ok(opened) => opened.map(|()| link),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the sandbox's runner did not open the link within {OPEN_TIMEOUT:?}"),
        )),
    }
}
