//! A container's network namespace, and one that is everything outside of it.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

pub(crate) const GATEWAY: &str = "172.30.0.1";
pub(crate) const SIBLING: &str = "172.30.0.9";
pub(crate) const LAN: &str = "10.20.0.5";
pub(crate) const RESOLVER: &str = "10.20.0.53";
pub(crate) const METADATA: &str = "169.254.169.254";
pub(crate) const CARRIER: &str = "100.100.100.200";
pub(crate) const HOST: &str = "203.0.113.7";
pub(crate) const PUBLIC: &str = "198.51.100.10";
pub(crate) const NEIGHBOUR_V6: &str = "fd00:30::1";
pub(crate) const BROADCAST: &str = "255.255.255.255";
pub(crate) const MULTICAST: &str = "224.0.0.251";

pub(crate) struct ClosedNetwork {
    inside: String,
    outside: String,
    pub(crate) has_v6: bool,
    /// Which datagrams arrived outside.
    heard: Arc<Mutex<HashSet<String>>>,
}

fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl ClosedNetwork {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = |side: &str| format!("sandbank-{side}-{}-{number}", std::process::id());
        let network = Self {
            inside: name("in"),
            outside: name("out"),
            has_v6: std::path::Path::new("/proc/net/if_inet6").exists(),
            heard: Arc::default(),
        };
        let Self { inside, outside, .. } = &network;
        ip(&format!("netns add {inside}"));
        ip(&format!("netns add {outside}"));
        ip(&format!("-n {outside} link add bridge type veth peer name eth0 netns {inside}"));
        for address in [LAN, RESOLVER, METADATA, CARRIER, HOST, PUBLIC] {
            ip(&format!("-n {outside} addr add {address}/32 dev lo"));
        }
        for address in [GATEWAY, SIBLING] {
            ip(&format!("-n {outside} addr add {address}/24 dev bridge"));
        }
        ip(&format!("-n {inside} addr add 172.30.0.2/24 dev eth0"));
        if network.has_v6 {
            ip(&format!("-n {outside} addr add {NEIGHBOUR_V6}/64 dev bridge nodad"));
            ip(&format!("-n {inside} addr add fd00:30::2/64 dev eth0 nodad"));
        }
        for (namespace, device) in
            [(outside, "lo"), (outside, "bridge"), (inside, "lo"), (inside, "eth0")]
        {
            ip(&format!("-n {namespace} link set {device} up"));
        }
        ip(&format!("-n {inside} route add default via {GATEWAY}"));
        if network.has_v6 {
            ip(&format!("-n {inside} route add default via {NEIGHBOUR_V6}"));
        }
        network.listen();
        network
    }

    pub(crate) fn inside(&self) -> OwnedFd {
        File::open(format!("/run/netns/{}", self.inside)).unwrap().into()
    }

    fn listen(&self) {
        let outside: OwnedFd = File::open(format!("/run/netns/{}", self.outside)).unwrap().into();
        let heard = self.heard.clone();
        let (ready, listening) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            enter(&outside);
            let any = if std::path::Path::new("/proc/net/if_inet6").exists() {
                Ipv6Addr::UNSPECIFIED.into()
            } else {
                std::net::IpAddr::from(Ipv4Addr::UNSPECIFIED)
            };
            for port in [53, 80] {
                let listener = TcpListener::bind((any, port)).unwrap();
                std::thread::spawn(move || while listener.accept().is_ok() {});
            }
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 80)).unwrap();
            let group = MULTICAST.parse().unwrap();
            socket.join_multicast_v4(&group, &GATEWAY.parse().unwrap()).unwrap();
            ready.send(()).unwrap();
            let mut buffer = [0; 64];
            while let Ok(length) = socket.recv(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                heard.lock().unwrap().insert(text);
            }
        });
        listening.recv().unwrap();
    }

    /// Connects from inside, by a device that the program names or by what the routes say.
    pub(crate) fn connect(&self, address: &str, port: u16, device: bool) -> io::Result<()> {
        let to = SocketAddr::new(address.parse().unwrap(), port);
        self.enter_and(move || {
            let socket = socket(to, libc::SOCK_STREAM, device)?;
            connect(&socket, to)
        })
    }

    /// Sends a datagram from inside that says what it is; whether it may be sent is not told.
    pub(crate) fn shout(&self, address: &str, text: &str) {
        let to = SocketAddr::new(address.parse().unwrap(), 80);
        let text = text.to_owned();
        let sent = self.enter_and(move || {
            let socket = UdpSocket::from(socket(to, libc::SOCK_DGRAM, true)?);
            socket.set_broadcast(true)?;
            socket.send_to(text.as_bytes(), to)
        });
        drop(sent);
    }

    pub(crate) fn has_heard(&self, text: &str) -> bool {
        self.heard.lock().unwrap().contains(text)
    }

    fn enter_and<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let inside = self.inside();
        std::thread::spawn(move || {
            enter(&inside);
            work()
        })
        .join()
        .unwrap()
    }
}

impl Drop for ClosedNetwork {
    fn drop(&mut self) {
        for namespace in [&self.inside, &self.outside] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

pub(crate) fn enter(namespace: &OwnedFd) {
    // SAFETY: it changes the namespace of this thread, which was made for that.
    assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn socket(to: SocketAddr, kind: libc::c_int, device: bool) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: plain integers in, a new descriptor out.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: it is new and ours.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    if device {
        let (level, name) = (libc::SOL_SOCKET, c"eth0");
        // SAFETY: the name outlives the call.
        check(unsafe {
            libc::setsockopt(fd, level, libc::SO_BINDTODEVICE, name.as_ptr().cast(), 4)
        })?;
    }
    Ok(socket)
}

/// Within a second and a half.
fn connect(socket: &OwnedFd, to: SocketAddr) -> io::Result<()> {
    let patience = libc::timeval { tv_sec: 1, tv_usec: 500_000 };
    let size = size_of::<libc::timeval>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: the structures outlive the calls and have the lengths that are given.
    unsafe {
        let value = (&raw const patience).cast();
        check(libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, value, size))?;
        match to {
            SocketAddr::V4(to) => {
                let mut address: libc::sockaddr_in = std::mem::zeroed();
                address.sin_family = libc::AF_INET as u16;
                address.sin_port = to.port().to_be();
                address.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
                let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
                check(libc::connect(fd, (&raw const address).cast(), length)).map(drop)
            }
            SocketAddr::V6(to) => {
                let mut address: libc::sockaddr_in6 = std::mem::zeroed();
                address.sin6_family = libc::AF_INET6 as u16;
                address.sin6_port = to.port().to_be();
                address.sin6_addr.s6_addr = to.ip().octets();
                let length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
                check(libc::connect(fd, (&raw const address).cast(), length)).map(drop)
            }
        }
    }
}
