//! What a machine's runner is told about the network that it closes: which addresses are the
//! host's own, and whom names are asked for. Known only where Docker is on this host.

use std::fs;
use std::net::Ipv4Addr;

use sandbank_protocol::EgressConfig;
use sandbank_protocol::egress::is_blocked;

use crate::connection::Address;

/// Addresses and resolvers change; reading both takes less than a request to the engine.
pub(crate) fn config(address: &Address) -> EgressConfig {
    if !matches!(address, Address::Unix(_)) {
        return EgressConfig::default();
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut resolvers = nameservers(&read("/etc/resolv.conf"));
    // Docker follows the stub of systemd's resolver to its source, too.
    if resolvers.iter().all(Ipv4Addr::is_loopback) {
        resolvers = nameservers(&read("/run/systemd/resolve/resolv.conf"));
    }
    resolvers.retain(|address| !address.is_loopback());
    let mut refused = local_addresses(&read("/proc/net/fib_trie"));
    // What is private is refused anyway.
    refused.retain(|address| !is_blocked(*address));
    EgressConfig { refused, resolvers }
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
    use super::*;

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
