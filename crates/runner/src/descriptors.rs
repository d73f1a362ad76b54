//! The descriptors the runner was started with: the named ones are kept, all others closed.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use sandbank_protocol::RunnerConfig;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Closes everything above stderr that the configuration does not name, and keeps the rest from
/// every command.
pub(crate) fn tidy(config: &RunnerConfig) -> io::Result<()> {
    let cgroup = config.cgroup.as_ref();
    let named = [config.listen_fd, cgroup.map(|cgroup| cgroup.fd), cgroup.and_then(|c| c.oom_fd)];
    let mut kept: Vec<RawFd> = named.into_iter().flatten().collect();
    if let Some(low) = kept.iter().find(|fd| **fd < 3) {
        let message = format!("descriptor {low} is one of the standard streams");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    kept.sort_unstable();
    let mut from = 3;
    for fd in &kept {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
    for fd in kept {
        // SAFETY: F_SETFD takes plain integers.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
            let error = io::Error::last_os_error();
            return Err(io::Error::new(error.kind(), format!("descriptor {fd}: {error}")));
        }
    }
    Ok(())
}

/// Takes over a descriptor that the engine named; one that is not open fails where it is used.
pub(crate) fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the engine passed it on for the runner alone; nothing else in this process owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Lets the runtime tell when the descriptor is ready.
pub(crate) fn watch<D: Owned>(descriptor: D, interest: Interest) -> io::Result<AsyncFd<D>> {
    // SAFETY: an owned descriptor stays the same open one for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    watched.map_err(io::Error::from)
}

/// Descriptors that nobody else closes.
pub(crate) trait Owned: AsRawFd {}
impl Owned for OwnedFd {}
impl Owned for Rc<OwnedFd> {}

fn close_range(from: RawFd, to: RawFd) {
    if from > to {
        return;
    }
    // SAFETY: no descriptor above stderr is owned by anything yet but those that are kept.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
    if closed == -1 {
        // Before Linux 5.9, or forbidden by an outer filter.
        const HIGHEST_TRIED: RawFd = 4096;
        for fd in from..=to.min(HIGHEST_TRIED) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}
