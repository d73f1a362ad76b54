//! Links, addresses and routes, on the host and in namespaces.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use sandbank_protocol::egress::BLOCKED;

use super::namespace::Namespace;

const GUEST: &str = "eth0";

pub(super) fn io_error(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}

fn is(error: &io::Error, code: i32) -> bool {
    error.raw_os_error() == Some(code)
}

/// One slot's link and what may be reached over it.
pub(super) struct Wiring<'a> {
    pub(super) name: &'a str,
    pub(super) gateway: Ipv4Addr,
    pub(super) guest: Ipv4Addr,
    pub(super) mtu: u32,
    pub(super) resolvers: &'a [Ipv4Addr],
    /// The host's own addresses.
    pub(super) host: &'a [Ipv4Addr],
}

/// Makes a pair of links, one end here and one in the namespace, ready to use. An existing link
/// of that name is an `AlreadyExists` error.
pub(super) async fn wire(
    host: &Handle,
    namespace: &Namespace,
    wiring: &Wiring<'_>,
) -> io::Result<()> {
    let peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(GUEST)
        .mtu(wiring.mtu)
        .setns_by_fd(namespace.fd.as_raw_fd())
        .build();
    let pair = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
        .name(wiring.name)
        .mtu(wiring.mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    host.link().add(pair).execute().await.map_err(io_error)?;
    let wired = async {
        wire_host(host, wiring).await?;
        wire_guest(&namespace.netlink, wiring).await
    };
    match wired.await {
        Ok(()) => Ok(()),
        Err(error) => {
            delete(host, wiring.name).await?;
            Err(error)
        }
    }
}

fn set_interface(family: &str, name: &str, key: &str, value: &str) -> io::Result<()> {
    std::fs::write(format!("/proc/sys/net/{family}/conf/{name}/{key}"), value)
}

async fn wire_host(host: &Handle, wiring: &Wiring<'_>) -> io::Result<()> {
    // Before it is up, so that it never has a link-local address; without IPv6 there is no file.
    let _ = set_interface("ipv6", wiring.name, "disable_ipv6", "1");
    set_interface("ipv4", wiring.name, "forwarding", "1")?;
    // Only packets with the slot's own address are taken from it.
    set_interface("ipv4", wiring.name, "rp_filter", "1")?;
    let index = index_of(host, wiring.name).await?;
    host.address().add(index, wiring.gateway.into(), 30).execute().await.map_err(io_error)?;
    host.link()
        .set(LinkUnspec::new_with_index(index).up().build())
        .execute()
        .await
        .map_err(io_error)
}

/// The guest's address has no network of its own and the private ranges have no route: even
/// without the host's rules a sandbox has no way to them, and learns so at once.
async fn wire_guest(netlink: &Handle, wiring: &Wiring<'_>) -> io::Result<()> {
    let index = index_of(netlink, GUEST).await?;
    netlink.address().add(index, wiring.guest.into(), 32).execute().await.map_err(io_error)?;
    netlink
        .link()
        .set(LinkUnspec::new_with_index(index).up().build())
        .execute()
        .await
        .map_err(io_error)?;
    let through = |address: Ipv4Addr, prefix: u8| {
        RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(address, prefix)
            .gateway(wiring.gateway)
            .output_interface(index)
            .onlink()
            .build()
    };
    let own = wiring.host.iter().filter(|address| !wiring.resolvers.contains(address));
    let blocked = BLOCKED.iter().copied().chain(own.map(|address| (*address, 32)));
    let prohibited = blocked.map(|(address, prefix)| {
        RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(address, prefix)
            .kind(RouteType::Prohibit)
            .build()
    });
    let routes = prohibited
        .chain(wiring.resolvers.iter().map(|resolver| through(*resolver, 32)))
        .chain([through(Ipv4Addr::UNSPECIFIED, 0)]);
    // Asked together: waiting for each answer would take longer than the kernel's work.
    try_join_all(routes.map(|route| add_route(netlink, route))).await.map(drop)
}

/// A route that is already there is fine: two lists may name the same address.
async fn add_route(netlink: &Handle, route: RouteMessage) -> io::Result<()> {
    match netlink.route().add(route).execute().await.map_err(io_error) {
        Err(error) if is(&error, libc::EEXIST) => Ok(()),
        other => other,
    }
}

async fn find(netlink: &Handle, name: &str) -> io::Result<LinkMessage> {
    let mut links = netlink.link().get().match_name(name).execute();
    links.try_next().await.map_err(io_error)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

async fn index_of(netlink: &Handle, name: &str) -> io::Result<u32> {
    Ok(find(netlink, name).await?.header.index)
}

/// Removes a link and its other end. None there is fine.
pub(super) async fn delete(netlink: &Handle, name: &str) -> io::Result<()> {
    let index = match index_of(netlink, name).await {
        Err(error) if is(&error, libc::ENODEV) || error.kind() == io::ErrorKind::NotFound => {
            return Ok(());
        }
        other => other?,
    };
    match netlink.link().del(index).execute().await.map_err(io_error) {
        Err(error) if is(&error, libc::ENODEV) => Ok(()),
        other => other,
    }
}

fn name_and_mtu(link: &LinkMessage) -> (Option<&str>, Option<u32>) {
    let name = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    });
    let mtu = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    });
    (name, mtu)
}

/// Index and name of all links whose names begin so.
pub(super) async fn named(netlink: &Handle, prefix: &str) -> io::Result<Vec<(u32, String)>> {
    let links: Vec<LinkMessage> =
        netlink.link().get().execute().try_collect().await.map_err(io_error)?;
    let named = links.iter().filter_map(|link| {
        let name = name_and_mtu(link).0.filter(|name| name.starts_with(prefix))?;
        Some((link.header.index, name.to_owned()))
    });
    Ok(named.collect())
}

/// A route of the host, as far as we look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) destination: Ipv4Addr,
    pub(super) prefix: u8,
    pub(super) interface: Option<u32>,
    /// To the host itself.
    pub(super) local: bool,
}

impl Route {
    /// Default routes, also in the two halves that some VPNs use.
    pub(super) fn is_default(&self) -> bool {
        self.prefix <= 1
    }

    fn leads_to(&self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
        address.to_bits() & mask == self.destination.to_bits() & mask
    }
}

pub(super) async fn routes(netlink: &Handle) -> io::Result<Vec<Route>> {
    let query = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let messages: Vec<RouteMessage> =
        netlink.route().get(query).execute().try_collect().await.map_err(io_error)?;
    Ok(messages.iter().map(route_of).collect())
}

fn route_of(message: &RouteMessage) -> Route {
    let mut route = Route {
        destination: Ipv4Addr::UNSPECIFIED,
        prefix: message.header.destination_prefix_length,
        interface: None,
        local: message.header.kind == RouteType::Local,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                route.destination = *address;
            }
            RouteAttribute::Oif(index) => route.interface = Some(*index),
            RouteAttribute::MultiPath(hops) => {
                route.interface = hops.first().map(|hop| hop.interface_index);
            }
            _ => {}
        }
    }
    route
}

/// The links that sandboxes' packets leave by: those of the default routes, and those on the way
/// to the resolvers.
fn exits(routes: &[Route], resolvers: &[Ipv4Addr]) -> Vec<u32> {
    let to_resolver = |resolver: &Ipv4Addr| {
        let leading = routes.iter().filter(|route| route.leads_to(*resolver));
        leading.max_by_key(|route| route.prefix).filter(|route| !route.local)
    };
    let defaults = routes.iter().filter(|route| route.is_default());
    let used = defaults.chain(resolvers.iter().filter_map(to_resolver));
    let mut indexes: Vec<u32> = used.filter_map(|route| route.interface).collect();
    indexes.sort_unstable();
    indexes.dedup();
    indexes
}

/// Name and largest packet of each link that sandboxes' packets leave by.
pub(super) async fn uplinks(
    netlink: &Handle,
    resolvers: &[Ipv4Addr],
) -> io::Result<Vec<(String, u32)>> {
    let mut uplinks = Vec::new();
    for index in exits(&routes(netlink).await?, resolvers) {
        let mut links = netlink.link().get().match_index(index).execute();
        if let Some(link) = links.try_next().await.map_err(io_error)?
            && let (Some(name), Some(mtu)) = name_and_mtu(&link)
        {
            uplinks.push((name.to_owned(), mtu));
        }
    }
    Ok(uplinks)
}

/// The host's own IPv4 addresses other than loopback.
pub(super) async fn addresses(netlink: &Handle) -> io::Result<Vec<Ipv4Addr>> {
    use rtnetlink::packet_route::address::AddressAttribute;
    let messages: Vec<_> =
        netlink.address().get().execute().try_collect().await.map_err(io_error)?;
    let mut addresses: Vec<Ipv4Addr> = messages
        .iter()
        .flat_map(|message| &message.attributes)
        .filter_map(|attribute| match attribute {
            AddressAttribute::Local(std::net::IpAddr::V4(address)) => Some(*address),
            _ => None,
        })
        .filter(|address| !address.is_loopback())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_by_default_routes_and_towards_resolvers() {
        let route = |destination: [u8; 4], prefix, interface, local| Route {
            destination: destination.into(),
            prefix,
            interface: Some(interface),
            local,
        };
        let routes = [
            route([0, 0, 0, 0], 0, 2, false),
            route([10, 0, 0, 0], 8, 3, false),
            route([10, 20, 0, 0], 16, 4, false),
            route([10, 20, 0, 1], 32, 4, true),
            route([192, 168, 0, 0], 16, 5, false),
        ];
        assert_eq!(exits(&routes, &[]), [2]);
        assert_eq!(exits(&routes, &[[9, 9, 9, 9].into(), [10, 20, 0, 53].into()]), [2, 4]);
        assert_eq!(exits(&routes, &[[10, 20, 0, 1].into()]), [2], "the host itself");
        assert_eq!(exits(&[], &[[10, 20, 0, 1].into()]), [0; 0]);
    }
}
