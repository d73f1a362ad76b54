//! Kinds of sockets.

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, call, failed};

const LAST_FAMILY: i32 = 45;
const TYPES: [i32; 5] =
    [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET];
const ALLOWED: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

fn open(family: i32, kind: i32, protocol: i32) -> Result<(), i32> {
    let words = [family as usize, kind as usize, protocol as usize, 0, 0];
    let socket = call(libc::SYS_socket, words)?;
    let _ = call(libc::SYS_close, [socket, 0, 0, 0, 0]);
    Ok(())
}

pub(super) fn raw(_: &BatteryPlan) -> Answer {
    if open(libc::AF_INET, libc::SOCK_DGRAM, 0).is_err() {
        return failed("not even a datagram socket opens");
    }
    match open(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) {
        Err(libc::EPERM) => Ok("EPERM".to_owned()),
        other => failed(format!("a raw socket {}", answered(&other))),
    }
}

pub(super) fn families(_: &BatteryPlan) -> Answer {
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        let opened = open(family, libc::SOCK_STREAM, 0);
        // A kernel without IPv6 is not the filter's doing.
        if opened.is_err() && opened != Err(libc::EAFNOSUPPORT) {
            return failed(format!("a socket of family {family} {}", answered(&opened)));
        }
    }
    // Without the filter, asking for the others would load modules into the host's kernel.
    let first = open(libc::AF_VSOCK, libc::SOCK_STREAM, 0);
    if first != Err(libc::EPERM) {
        return failed(format!("a socket to the hypervisor {}", answered(&first)));
    }
    let mut surprises = Vec::new();
    for family in (0..=LAST_FAMILY).filter(|family| !ALLOWED.contains(family)) {
        for kind in TYPES {
            let opened = open(family, kind, 0);
            if opened != Err(libc::EPERM) {
                surprises.push(format!("family {family} type {kind} {}", answered(&opened)));
            }
        }
    }
    for protocol in [libc::NETLINK_KOBJECT_UEVENT, libc::NETLINK_AUDIT, libc::NETLINK_NETFILTER] {
        let opened = open(libc::AF_NETLINK, libc::SOCK_RAW, protocol);
        if opened != Err(libc::EPERM) {
            surprises.push(format!("netlink protocol {protocol} {}", answered(&opened)));
        }
    }
    surprises.truncate(3);
    all_refused(&surprises, "EPERM for 42 families of five types")
}
