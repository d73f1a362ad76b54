//! `clone3`, for the single-threaded spawner only.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Not in libc for every target.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

pub(crate) enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Clones the calling process like `fork`, with new namespaces, straight into a v2 cgroup when one
/// is given.
///
/// # Safety
///
/// The caller has exactly one thread: the child continues with a copy of its memory, and a lock
/// held by another thread would stay locked for ever.
pub(crate) unsafe fn clone_process(
    namespaces: i32,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Cloned> {
    let mut pidfd: i32 = -1;
    let mut flags = u64::from(namespaces as u32) | u64::from(libc::CLONE_PIDFD as u32);
    if cgroup.is_some() {
        flags |= CLONE_INTO_CGROUP;
    }
    let arguments = libc::clone_args {
        flags,
        pidfd: &raw mut pidfd as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: cgroup.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    // SAFETY: the arguments are valid for the call; without CLONE_VM the child owns its copy of
    // everything, and the caller promised to be the only thread.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel stored a new descriptor that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid: pid as i32, pidfd })
        }
    }
}
