//! Network namespaces, each born in a thread that ends with its birth.
//!
//! They belong to the host's user namespace, so nothing in a sandbox may configure them.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rtnetlink::{Handle, LinkUnspec};
use rustix::thread::UnshareFlags;

pub(super) struct Namespace {
    pub(super) fd: OwnedFd,
    /// Speaks to the kernel inside the namespace. Holds it alive, so it goes before `fd` is used.
    pub(super) netlink: Handle,
}

/// Written inside a new namespace. Those that must hold come with `true`.
const SETTINGS: [(&str, &str, bool); 3] = [
    // Workloads have no capabilities and still want port 80.
    ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", true),
    ("/proc/sys/net/ipv4/ping_group_range", "0 2147483647", false),
    // For links to come; loopback is already there and keeps ::1. Without IPv6 there is no file.
    ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", false),
];

/// Makes a namespace with nothing but loopback, up.
pub(super) async fn create() -> io::Result<Namespace> {
    let runtime = tokio::runtime::Handle::current();
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("network-namespace".to_owned())
        .spawn(move || done.send(enter_new(&runtime)))?;
    let namespace = result.await.map_err(io::Error::other)??;
    let up = LinkUnspec::new_with_name("lo").up().build();
    namespace.netlink.link().set(up).execute().await.map_err(super::link::io_error)?;
    Ok(namespace)
}

fn enter_new(runtime: &tokio::runtime::Handle) -> io::Result<Namespace> {
    // SAFETY: no file descriptor table is unshared; only this thread's network namespace changes,
    // and the thread ends when this function has returned.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    let fd = OwnedFd::from(File::open("/proc/thread-self/ns/net")?);
    for (path, value, needed) in SETTINGS {
        match std::fs::write(path, value) {
            Err(error) if needed => return Err(error),
            _ => {}
        }
    }
    let _context = runtime.enter();
    // The socket belongs to the namespace of the thread that makes it.
    let (connection, netlink, _) = rtnetlink::new_connection()?;
    runtime.spawn(connection);
    Ok(Namespace { fd, netlink })
}
