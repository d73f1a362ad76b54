//! Network namespaces, made by threads that enter each only to furnish it.
//!
//! They belong to the host's user namespace, so nothing in a sandbox may configure them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use rtnetlink::Handle;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use tokio::sync::oneshot;

/// Written inside a new namespace. Those that must hold come with `true`.
const SETTINGS: [(&str, &str, bool); 3] = [
    // Workloads have no capabilities and still want port 80.
    ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", true),
    ("/proc/sys/net/ipv4/ping_group_range", "0 2147483647", false),
    // For links to come; loopback is already there and keeps ::1. Without IPv6 there is no file.
    ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", false),
];

/// A namespace to be wired.
pub(super) struct Namespace {
    pub(super) fd: OwnedFd,
    /// Speaks to the kernel inside the namespace. Holds it alive, so it goes before `fd` is used.
    pub(super) netlink: Handle,
}

/// A namespace with nothing but loopback, up.
pub(super) async fn create_empty() -> io::Result<OwnedFd> {
    make(Ok).await
}

/// The same, to be configured further.
pub(super) async fn create() -> io::Result<Namespace> {
    let runtime = tokio::runtime::Handle::current();
    make(move |fd| {
        let _context = runtime.enter();
        // The socket belongs to the namespace of the thread that makes it.
        let (connection, netlink, _) = rtnetlink::new_connection()?;
        runtime.spawn(connection);
        Ok(Namespace { fd, netlink })
    })
    .await
}

/// Done by the thread inside a new namespace, with the result sent to whoever waits.
type Job = Box<dyn FnOnce(io::Result<OwnedFd>) + Send>;

/// Threads that wait for the next job. Starting one for each would cost as much as the namespace.
static IDLE: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());

/// One for the pool, one for who finds it empty; further ones end after their job.
const MAX_IDLE: usize = 2;

fn idle() -> MutexGuard<'static, Vec<mpsc::Sender<Job>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn make<T: Send + 'static>(
    finish: impl FnOnce(OwnedFd) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    hand_over(Box::new(move |made| drop(done.send(made.and_then(finish)))))?;
    result.await.map_err(io::Error::other)?
}

/// To a thread that waits, or to a new one.
fn hand_over(mut job: Job) -> io::Result<()> {
    let next_idle = || idle().pop();
    while let Some(jobs) = next_idle() {
        match jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(back)) => job = back,
        }
    }
    std::thread::Builder::new().name("network-namespaces".to_owned()).spawn(move || work(job))?;
    Ok(())
}

/// Ends when it cannot come home: it would keep a machine's namespace alive.
fn work(first: Job) {
    let home = own_namespace();
    let mut next = Some(first);
    while let Some(job) = next {
        job(enter_new());
        let kind = Some(LinkNameSpaceType::Network);
        let Ok(home) = &home else { return };
        if rustix::thread::move_into_link_name_space(home.as_fd(), kind).is_err() {
            return;
        }
        let (jobs, queue) = mpsc::channel();
        {
            let mut idle = idle();
            if idle.len() >= MAX_IDLE {
                return;
            }
            idle.push(jobs);
        }
        next = queue.recv().ok();
    }
}

fn own_namespace() -> io::Result<OwnedFd> {
    File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
}

fn enter_new() -> io::Result<OwnedFd> {
    // SAFETY: no file descriptor table is unshared; only this thread's network namespace changes,
    // and the thread does nothing that depends on it.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
    let fd = own_namespace()?;
    for (path, value, needed) in SETTINGS {
        match std::fs::write(path, value) {
            Err(error) if needed => return Err(error),
            _ => {}
        }
    }
    raise_loopback()?;
    Ok(fd)
}

/// By the old call: a conversation over netlink takes several times as long.
fn raise_loopback() -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // SAFETY: all fields are integers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads a request that outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
