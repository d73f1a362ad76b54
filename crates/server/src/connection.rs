//! What is known of the connection a request came on. Only the listener makes these, so nothing
//! in them can be forged by a header.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Connection {
    pub(crate) peer: Option<SocketAddr>,
    /// The address that the client connected to.
    pub(crate) local: Option<SocketAddr>,
    /// The listener is bound to a loopback address: only this machine can reach it.
    pub(crate) loopback_bind: bool,
}

impl Connection {
    /// One caller as far as addresses can tell: an IPv6 host owns its whole /64.
    pub(crate) fn peer_network(&self) -> IpAddr {
        match self.peer.map(|peer| peer.ip().to_canonical()) {
            Some(IpAddr::V6(address)) => {
                Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into()
            }
            Some(address) => address,
            None => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}
