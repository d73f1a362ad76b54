//! What a machine's runner is told about the network that it closes: which addresses are the
//! host's own, and whom names are asked for. Those of Docker's host are ours only where its bridge
//! is a device of ours; elsewhere, as in a container beside the machines, they have to be said.

use std::fs;
use std::net::Ipv4Addr;

use sandbank_protocol::EgressConfig;
use sandbank_protocol::egress::is_blocked;

use crate::connection::Address;
use crate::controls::Host;
use crate::network::Bridge;
use crate::settings::DockerSettings;

#[derive(Debug, Clone)]
pub(crate) struct Egress {
    pub(crate) config: EgressConfig,
    /// Whom Docker's resolver asks. Empty: whom it finds by itself.
    pub(crate) dns: Vec<Ipv4Addr>,
    /// Whether all public addresses of Docker's host are among the refused.
    pub(crate) knows_host: bool,
}

/// What decides, as the kernel and the system tell it.
struct Here {
    /// `/proc/net/dev`
    devices: String,
    local: Vec<Ipv4Addr>,
    resolvers: Vec<Ipv4Addr>,
}

/// Addresses and resolvers change; reading both takes less than a request to the engine.
pub(crate) fn learn(
    address: &Address,
    bridge: &Bridge,
    settings: &DockerSettings,
    host: &Host,
) -> Egress {
    let told = Told { addresses: &host.addresses, resolvers: &host.resolvers };
    conclude(address, bridge, settings, told, Here::read())
}

/// What became known of Docker's host by the way.
#[derive(Clone, Copy)]
struct Told<'a> {
    addresses: &'a [Ipv4Addr],
    resolvers: &'a [Ipv4Addr],
}

fn conclude(
    address: &Address,
    bridge: &Bridge,
    settings: &DockerSettings,
    told: Told<'_>,
    here: Here,
) -> Egress {
    let is_here = here.has(address, bridge);
    let mut refused = [&settings.host_addresses[..], told.addresses].concat();
    let mut resolvers = settings.resolvers.clone();
    let dns = resolvers.clone();
    if is_here {
        refused.extend(here.local);
        if resolvers.is_empty() {
            resolvers = here.resolvers;
        }
    }
    if resolvers.is_empty() {
        resolvers = told.resolvers.to_vec();
    }
    // What is private is refused anyway.
    refused.retain(|address| !is_blocked(*address));
    refused.sort();
    refused.dedup();
    let knows_host = is_here || !settings.host_addresses.is_empty();
    Egress { config: EgressConfig { refused, resolvers }, dns, knows_host }
}

impl Here {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut resolvers = nameservers(&read("/etc/resolv.conf"));
        // Docker follows the stub of systemd's resolver to its source, too.
        if resolvers.iter().all(Ipv4Addr::is_loopback) {
            resolvers = nameservers(&read("/run/systemd/resolve/resolv.conf"));
        }
        resolvers.retain(|address| !address.is_loopback());
        let local = local_addresses(&read("/proc/net/fib_trie"));
        Self { devices: read("/proc/net/dev"), local, resolvers }
    }

    /// Docker's bridge is one of our devices, and its gateway one of our addresses.
    fn has(&self, address: &Address, bridge: &Bridge) -> bool {
        // A device that somebody named may have the same name on two hosts.
        if bridge.is_named && !matches!(address, Address::Unix(_)) {
            return false;
        }
        let names = self.devices.lines().filter_map(|line| line.split_once(':'));
        let mut names = names.map(|(name, _)| name.trim());
        names.any(|name| name == bridge.device)
            && bridge.gateways.iter().any(|gateway| self.local.contains(gateway))
    }
}

fn nameservers(resolv_conf: &str) -> Vec<Ipv4Addr> {
    let lines = resolv_conf.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse().ok()).collect()
}

/// An address is on a line of its own, and the next says whose it is.
fn local_addresses(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in fib_trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(last);
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use sandbank_engine::InstanceId;

    use super::*;

    const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 1);
    const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const NOTHING: Told<'_> = Told { addresses: &[], resolvers: &[] };

    fn here(devices: &str, local: &[Ipv4Addr]) -> Here {
        let devices = format!("Inter-| x\n face | y\n    lo: 1 2\n{devices}: 3 4\n");
        Here { devices, local: local.to_vec(), resolvers: vec![RESOLVER] }
    }

    fn bridge() -> Bridge {
        Bridge { device: "br-0123456789ab".into(), is_named: false, gateways: vec![GATEWAY] }
    }

    #[test]
    fn our_addresses_are_docker_s_only_where_its_bridge_is_ours() {
        let socket = Address::Unix("/run/docker.sock".into());
        let settings = DockerSettings::new(InstanceId::random());
        let learn = |here| conclude(&socket, &bridge(), &settings, NOTHING, here);
        let same = learn(here("br-0123456789ab", &[PUBLIC, GATEWAY]));
        assert_eq!((same.knows_host, same.config.refused), (true, vec![PUBLIC]));
        assert_eq!((same.config.resolvers, same.dns), (vec![RESOLVER], vec![]));
        // A container with the socket; a host that has a Docker, too, with the same addresses.
        for other in [here("eth0", &[PUBLIC, GATEWAY]), here("br-0123456789ab", &[PUBLIC])] {
            let elsewhere = learn(other);
            assert!(!elsewhere.knows_host);
            assert_eq!(elsewhere.config, EgressConfig::default());
        }
    }

    #[test]
    fn a_bridge_that_somebody_named_proves_nothing_from_afar() {
        let named = Bridge { device: "boxes".into(), is_named: true, ..bridge() };
        let settings = DockerSettings::new(InstanceId::random());
        let far = Address::Tcp { host: "box".into(), port: 2375 };
        for (address, known) in [(far, false), (Address::Unix("/x".into()), true)] {
            let here = here("boxes", &[PUBLIC, GATEWAY]);
            let learned = conclude(&address, &named, &settings, NOTHING, here);
            assert_eq!(learned.knows_host, known, "{address}");
        }
    }

    #[test]
    fn what_was_said_or_became_known_is_refused_everywhere() {
        let mut settings = DockerSettings::new(InstanceId::random());
        let (said, told) = (Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 2));
        let socket = Address::Unix("/x".into());
        let addresses = Told { addresses: &[told], ..NOTHING };
        let learned = conclude(&socket, &bridge(), &settings, addresses, here("eth0", &[PUBLIC]));
        assert_eq!((learned.knows_host, learned.config.refused), (false, vec![told]));
        settings.host_addresses = vec![said];
        settings.resolvers = vec![RESOLVER];
        let learned = conclude(&socket, &bridge(), &settings, addresses, here("eth0", &[PUBLIC]));
        assert_eq!((learned.knows_host, learned.config.refused), (true, vec![said, told]));
        assert_eq!((learned.config.resolvers, learned.dns), (vec![RESOLVER], vec![RESOLVER]));
    }

    #[test]
    fn the_forwarder_of_a_rootless_engine_is_asked_unless_somebody_else_was_named() {
        let mut settings = DockerSettings::new(InstanceId::random());
        let forwarder = Ipv4Addr::new(10, 0, 2, 3);
        let rootless = Told { resolvers: &[forwarder], ..NOTHING };
        let socket = Address::Unix("/x".into());
        let learn = |settings: &DockerSettings| {
            conclude(&socket, &bridge(), settings, rootless, here("eth0", &[PUBLIC]))
        };
        let learned = learn(&settings);
        assert_eq!((learned.config.resolvers, learned.dns), (vec![forwarder], vec![]));
        settings.resolvers = vec![RESOLVER];
        assert_eq!(learn(&settings).config.resolvers, [RESOLVER]);
    }

    #[test]
    fn the_host_s_own_addresses_are_read_from_its_routes() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
                    |-- 203.0.113.7\n        /32 host LOCAL\n     |-- 203.0.113.255\n        \
                    /32 link BROADCAST\nLocal:\n     |-- 203.0.113.7\n        /32 host LOCAL\n";
        assert_eq!(local_addresses(trie), [Ipv4Addr::new(203, 0, 113, 7)]);
    }

    #[test]
    fn resolvers_are_those_of_the_host() {
        let text =
            "# x\nnameserver 10.0.0.2\nnameserver fe80::1\nsearch a\nnameserver 127.0.0.53\n";
        assert_eq!(nameservers(text), [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 53)]);
    }
}
