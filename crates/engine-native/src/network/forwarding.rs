//! IPv4 forwarding of the host's links.
//!
//! Where the host does not forward at all, it is turned on only for the links of its default
//! routes and on the way to its resolvers, and the instance's rules drop what would be forwarded there for anyone but sandboxes:
//! the host does not become a router. `net.ipv4.ip_forward` itself is left alone, so a program
//! that turns it on later still notices that it did, and takes its own precautions.

use std::io;

pub(super) const FIX: &str = "run `sysctl -w net.ipv4.ip_forward=1`";

/// Whether the host forwards between all its links by its own decision.
pub(super) fn is_global() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|text| text.trim() == "1")
}

fn path(link: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{link}/forwarding")
}

pub(super) fn is_on(link: &str) -> bool {
    std::fs::read_to_string(path(link)).is_ok_and(|text| text.trim() == "1")
}

pub(super) fn set(link: &str, on: bool) -> io::Result<()> {
    std::fs::write(path(link), if on { "1" } else { "0" })
}
