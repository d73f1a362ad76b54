//! Machines that the tests talk to, each a namespace, and talking from inside one.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};
use tokio::io::AsyncWriteExt;

use crate::network::namespace::{self, Namespace};

pub(super) const PUBLIC: &str = "198.51.100.10";
pub(super) const UPLINK: &str = "203.0.113.2";
pub(super) const LAN: &str = "10.20.0.5";
pub(super) const RESOLVER: &str = "10.20.0.53";
pub(super) const METADATA: &str = "169.254.169.254";
pub(super) const ULA: &str = "fd00:20::5";

pub(super) struct FakeHost {
    pub(super) public: Namespace,
    pub(super) lan: Namespace,
    _metadata: Namespace,
    /// What `/run` is to a host.
    pub(super) run: tempfile::TempDir,
}

/// Runs a tool in the calling thread's namespaces.
pub(super) fn tool(line: &str) -> String {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs something in a thread that has entered a namespace.
pub(super) async fn inside<T: Send + 'static>(
    netns: impl AsFd,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let netns = netns.as_fd().try_clone_to_owned().unwrap();
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        enter(&netns);
        let _ = done.send(work());
    });
    result.await.unwrap()
}

fn enter(netns: &OwnedFd) {
    // SAFETY: it changes the namespace of this thread, which was made for that.
    assert_eq!(unsafe { libc::setns(netns.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
}

/// Says to everyone who connects which address they come from.
pub(super) async fn serve(netns: impl AsFd, address: &str, port: u16) {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    let listener = inside(netns, move || std::net::TcpListener::bind(address).unwrap()).await;
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, peer)) = listener.accept().await {
            let _ = stream.write_all(peer.ip().to_canonical().to_string().as_bytes()).await;
        }
    });
}

/// The same over UDP.
pub(super) async fn serve_udp(netns: impl AsFd, address: &str, port: u16) {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    let socket = inside(netns, move || UdpSocket::bind(address).unwrap()).await;
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::UdpSocket::from_std(socket).unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 64];
        while let Ok((_, peer)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(peer.ip().to_string().as_bytes(), peer).await;
        }
    });
}

const PATIENCE: Duration = Duration::from_millis(1500);

/// Connects from inside a namespace and gives what the other side says.
pub(super) async fn connect(netns: impl AsFd, address: &str, port: u16) -> io::Result<String> {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    inside(netns, move || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    })
    .await
}

/// Asks over UDP from inside a namespace.
pub(super) async fn ask(netns: impl AsFd, address: &str, port: u16) -> io::Result<String> {
    let address = SocketAddr::new(address.parse().unwrap(), port);
    inside(netns, move || {
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(address)?;
        socket.send(b"?")?;
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    })
    .await
}

/// The namespace of the calling thread.
pub(super) fn here() -> OwnedFd {
    std::fs::File::open("/proc/thread-self/ns/net").unwrap().into()
}

impl FakeHost {
    pub(super) async fn new() -> Self {
        // A new namespace has what the machine itself has now.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap();
        tool("ip link set lo up");
        let public = join("up0", "203.0.113.2/24", &["203.0.113.1/24", "198.51.100.10/32"]).await;
        tool("ip link set up0 mtu 1400");
        tool("ip route add default via 203.0.113.1");
        let lan = join("lan0", "10.20.0.1/24", &["10.20.0.5/24", "10.20.0.53/24"]).await;
        tool("ip addr add fd00:20::1/64 dev lan0 nodad");
        let v6 = "ip addr add fd00:20::5/64 dev eth0 nodad";
        inside(&lan.fd, move || {
            std::fs::write("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "0").unwrap();
            tool(v6)
        })
        .await;
        let metadata = join("meta0", "169.254.0.1/16", &["169.254.169.254/16"]).await;
        for (namespace, address) in
            [(&public, PUBLIC), (&lan, LAN), (&lan, RESOLVER), (&lan, ULA), (&metadata, METADATA)]
        {
            serve(&namespace.fd, address, 80).await;
            serve(&namespace.fd, address, 53).await;
            serve_udp(&namespace.fd, address, 53).await;
            serve_udp(&namespace.fd, address, 80).await;
        }
        serve(here(), "0.0.0.0", 8080).await;
        serve_udp(here(), "0.0.0.0", 8080).await;
        serve(here(), "::1", 8081).await;
        Self { public, lan, _metadata: metadata, run: tempfile::tempdir().unwrap() }
    }
}

/// A new machine on a link of its own to the host, which is its default route.
async fn join(name: &str, host: &str, addresses: &'static [&'static str]) -> Namespace {
    let namespace = namespace::create().await.unwrap();
    let (connection, netlink, _) = rtnetlink::new_connection().unwrap();
    tokio::spawn(connection);
    let peer = LinkMessageBuilder::<LinkUnspec>::new().name("eth0");
    let peer = peer.setns_by_fd(namespace.fd.as_raw_fd()).build();
    let pair = LinkMessageBuilder::<LinkVeth>::new_with_info_kind(InfoKind::Veth)
        .name(name)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    netlink.link().add(pair).execute().await.unwrap();
    tool(&format!("ip addr add {host} dev {name}"));
    tool(&format!("ip link set {name} up"));
    let gateway = host.split('/').next().unwrap().to_owned();
    inside(&namespace.fd, move || {
        for address in addresses {
            tool(&format!("ip addr add {address} dev eth0"));
        }
        tool("ip link set eth0 up");
        tool(&format!("ip route add default via {gateway}"));
    })
    .await;
    namespace
}
