//! The routes of a closed network: out by the gateway, and nowhere near.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use sandbank_protocol::EgressConfig;
use sandbank_protocol::egress::BLOCKED;

use super::PrepareError;
use super::netlink::{ACK, CREATE, DUMP, Message, REPLACE, Socket};
use super::route::{LOOPBACK, Route};
use crate::limits::NETLINK_ATTEMPTS;

/// All routes there are, of both families.
pub(super) fn read() -> Result<Vec<Route>, PrepareError> {
    let failed = |error| PrepareError::Kernel { step: "read the routes", error };
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let answers = dump(family).map_err(failed)?;
        let routes = answers.iter().filter_map(|(kind, body)| Route::parse(*kind, body));
        // Without IPv6 the kernel answers with what it has.
        all.extend(routes.filter(|route| route.destination.is_ipv4() == (family == libc::AF_INET)));
    }
    Ok(all)
}

/// Again when the table changed meanwhile.
fn dump(family: libc::c_int) -> io::Result<Vec<super::netlink::Answer>> {
    let mut fixed = [0; 12];
    fixed[0] = family as u8;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let dumped =
            Socket::open(libc::NETLINK_ROUTE)?.dump(Message::new(libc::RTM_GETROUTE, DUMP, &fixed));
        match dumped {
            Err(error)
                if error.kind() == io::ErrorKind::Interrupted && attempts < NETLINK_ATTEMPTS => {}
            result => return result,
        }
    }
}

pub(super) struct Plan {
    /// Networks that nothing may be sent to.
    pub(super) refused: Vec<(Ipv4Addr, u8)>,
    /// The main table as it shall be.
    wanted: Vec<Route>,
}

impl Plan {
    pub(super) fn new(found: &[Route], egress: &EgressConfig) -> Result<Self, PrepareError> {
        let mut refused: Vec<(Ipv4Addr, u8)> = BLOCKED.to_vec();
        let mut wanted = Vec::new();
        let mut exit = None;
        for route in found.iter().filter(|route| route.is_main()) {
            let IpAddr::V4(destination) = route.destination else { continue };
            match (route.prefix, route.gateway, route.device) {
                (0, Some(IpAddr::V4(gateway)), Some(_)) if !route.several => {
                    let onlink = Route { onlink: true, ..*route };
                    wanted.push(onlink);
                    exit.get_or_insert(onlink);
                    refused.push((gateway, 32));
                }
                (0, ..) => {
                    let text = format!("there is no one gateway behind {route:?}");
                    return Err(PrepareError::NotAsAsked(text));
                }
                (prefix, ..) => {
                    wanted.push(Route::prohibit(destination, prefix, route.priority));
                    refused.push((destination, prefix));
                }
            }
        }
        refused.extend(egress.refused.iter().map(|address| (*address, 32)));
        refused.sort_unstable();
        refused.dedup();
        for resolver in egress.resolvers.iter().filter(|resolver| !resolver.is_loopback()) {
            let route = exit.map(|exit| Route {
                destination: (*resolver).into(),
                prefix: 32,
                priority: 0,
                ..exit
            });
            wanted.extend(route.filter(|route| !wanted.contains(route)));
        }
        for (address, prefix) in &refused {
            let taken = |route: &Route| {
                (route.destination, route.prefix, route.priority)
                    == (IpAddr::V4(*address), *prefix, 0)
            };
            if !wanted.iter().any(taken) {
                wanted.push(Route::prohibit(*address, *prefix, 0));
            }
        }
        Ok(Self { refused, wanted })
    }

    /// Ways out first: those to the gateway that they do not need any more go next.
    pub(super) fn apply(&self, found: &[Route]) -> Result<(), PrepareError> {
        let failed = |step| move |error| PrepareError::Kernel { step, error };
        let mut socket = Socket::open(libc::NETLINK_ROUTE).map_err(failed("speak of routes"))?;
        let (out, refusals): (Vec<&Route>, Vec<&Route>) =
            self.wanted.iter().partition(|route| route.gateway.is_some());
        for route in out.into_iter().chain(refusals) {
            let added = socket.change(route.add(ACK | CREATE | REPLACE));
            added.map_err(failed("set a route"))?;
        }
        for route in found.iter().filter(|route| leads_out_by_v6(route)) {
            match socket.change(route.delete(ACK)) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                deleted => deleted.map_err(failed("remove an IPv6 route"))?,
            }
        }
        Ok(())
    }

    /// Whether the kernel has exactly what was planned.
    pub(super) fn check(&self, found: &[Route]) -> Result<(), PrepareError> {
        let wrong =
            |what: &str, route: &Route| Err(PrepareError::NotAsAsked(format!("{what} {route:?}")));
        if let Some(missing) = self.wanted.iter().find(|route| !found.contains(route)) {
            return wrong("there is no", missing);
        }
        for route in found {
            let planned = match route.destination {
                IpAddr::V6(_) => !leads_out_by_v6(route),
                IpAddr::V4(_) if route.is_main() => self.wanted.contains(route),
                // What the machine itself has: its addresses and broadcasts.
                IpAddr::V4(_) => {
                    let own = [libc::RTN_LOCAL, libc::RTN_BROADCAST];
                    route.table == u32::from(libc::RT_TABLE_LOCAL) && own.contains(&route.kind)
                }
            };
            if !planned {
                return wrong("there is still", route);
            }
        }
        Ok(())
    }
}

/// IPv6 is not routed, and neighbours are not reached by it either.
fn leads_out_by_v6(route: &Route) -> bool {
    let sends = [libc::RTN_UNICAST, libc::RTN_MULTICAST].contains(&route.kind);
    route.destination.is_ipv6() && sends && route.device != Some(LOOPBACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unicast(destination: [u8; 4], prefix: u8, gateway: Option<[u8; 4]>) -> Route {
        Route {
            kind: libc::RTN_UNICAST,
            gateway: gateway.map(IpAddr::from),
            device: Some(2),
            ..Route::prohibit(destination.into(), prefix, 0)
        }
    }

    #[test]
    fn the_bridge_becomes_unreachable_and_the_gateway_stays_the_way_out() {
        let gateway = [172, 17, 0, 1];
        let found = [unicast([0; 4], 0, Some(gateway)), unicast([172, 17, 0, 0], 16, None)];
        let egress = EgressConfig {
            refused: vec![[93, 184, 216, 34].into()],
            resolvers: vec![[127, 0, 0, 11].into(), [10, 0, 0, 2].into()],
        };
        let plan = Plan::new(&found, &egress).unwrap();
        for refused in [(gateway, 32), ([172, 17, 0, 0], 16), ([93, 184, 216, 34], 32)] {
            assert!(plan.refused.contains(&(refused.0.into(), refused.1)), "{refused:?}");
            assert!(plan.wanted.contains(&Route::prohibit(refused.0.into(), refused.1, 0)));
        }
        let out: Vec<_> = plan.wanted.iter().filter(|route| route.gateway.is_some()).collect();
        assert_eq!(out.len(), 2, "{out:?}");
        assert!(out.iter().all(|route| route.onlink && route.gateway == Some(gateway.into())));

        plan.check(&plan.wanted).unwrap();
        plan.check(&found).unwrap_err();
        let with_more = [&plan.wanted[..], &found[1..]].concat();
        plan.check(&with_more).unwrap_err();
        plan.check(&plan.wanted[1..]).unwrap_err();
    }

    #[test]
    fn a_default_route_without_one_gateway_is_refused() {
        let direct = unicast([0; 4], 0, None);
        assert!(Plan::new(&[direct], &EgressConfig::default()).is_err());
        let several = Route { several: true, ..unicast([0; 4], 0, Some([10, 0, 0, 1])) };
        assert!(Plan::new(&[several], &EgressConfig::default()).is_err());
    }
}
