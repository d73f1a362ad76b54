//! What can be reached over the network.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, failed, not_tried};

/// A private, a metadata, a documentation address and a public one; nothing is sent to them.
const FAR: [&str; 6] = [
    "10.0.0.1:80",
    "192.168.0.1:80",
    "169.254.169.254:80",
    "192.0.2.1:80",
    "1.1.1.1:53",
    "[2001:db8::1]:80",
];

/// The kernel refuses at once, but only a few times a second; one second later it is asked again.
/// Not so long that it gives up a neighbour who does not answer, which reads like a refusal.
const PATIENCE: Duration = Duration::from_millis(2500);

fn loopback_works() -> bool {
    let exchange = || -> std::io::Result<bool> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        socket.send_to(b"x", socket.local_addr()?)?;
        let mut byte = [0];
        Ok(socket.recv(&mut byte)? == 1)
    };
    exchange().unwrap_or(false)
}

fn links() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Connecting a datagram socket asks the routes and sends nothing.
fn has_route(address: &str) -> bool {
    let Ok(address) = address.parse::<SocketAddr>() else { return false };
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    UdpSocket::bind(any).and_then(|socket| socket.connect(address)).is_ok()
}

pub(super) fn loopback_only(plan: &BatteryPlan) -> Answer {
    if !plan.loopback_only {
        return not_tried("this sandbox has a network");
    }
    if !loopback_works() {
        return failed("not even loopback works");
    }
    let mut surprises = Vec::new();
    let links = links();
    // Of tunnel modules the kernel puts idle, unrouted links into every namespace.
    if let Some(other) = links.iter().find(|name| *name != "lo" && is_up(name)) {
        surprises.push(format!("there is a link {other}"));
    }
    if links.is_empty() {
        return failed("the links cannot be listed");
    }
    for address in FAR.into_iter().filter(|address| has_route(address)) {
        surprises.push(format!("there is a route to {address}"));
    }
    all_refused(&surprises, "lo alone, and a route to nowhere")
}

fn is_up(link: &str) -> bool {
    const UP: u32 = 1;
    let flags = std::fs::read_to_string(format!("/sys/class/net/{link}/flags"));
    let flags = flags
        .ok()
        .and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    // In doubt it is.
    flags.is_none_or(|flags| flags & UP != 0)
}

pub(super) fn private_addresses(plan: &BatteryPlan) -> Answer {
    if plan.private.is_empty() {
        return not_tried("this sandbox has no network");
    }
    if !loopback_works() {
        return failed("not even loopback works");
    }
    let mut surprises = Vec::new();
    for address in &plan.private {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(_) => surprises.push(format!("{address} answers")),
            // By a route of the sandbox, or by a rule of the host.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EHOSTUNREACH)) => {}
            // Silence is that of an address that nobody has, and that nothing keeps it from.
            Err(error) => surprises.push(format!("{address} was not refused: {error}")),
        }
    }
    all_refused(&surprises, format!("{} refused at once", plan.private.len()))
}
