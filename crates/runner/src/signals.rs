//! The runner's own signals: what it ignores, and the descriptor that tells of dead children.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Ignored by the runner, reset in every command: a reader that went away and a file size limit
/// are errors of one request, never the end of the runner.
pub(crate) const IGNORED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Signals of the kernel's own numbering.
const HIGHEST: libc::c_int = 64;

/// The kernel's own `sigaction`: handler, flags, restorer, mask.
pub(crate) type KernelAction = [u64; 4];
pub(crate) const DEFAULT: KernelAction = [libc::SIG_DFL as u64, 0, 0, 0];
const IGNORE: KernelAction = [libc::SIG_IGN as u64, 0, 0, 0];

/// Bytes of the kernel's signal mask.
pub(crate) const SET_BYTES: usize = 8;

/// Undoes whatever dispositions and mask came from the parent, then ignores [`IGNORED`]. Asks
/// the kernel directly: libc keeps two signals to itself, and may have left them ignored.
pub(crate) fn reset() {
    let old = std::ptr::null::<libc::c_void>();
    for signal in 1..=HIGHEST {
        let action = if IGNORED.contains(&signal) { &IGNORE } else { &DEFAULT };
        let action = std::ptr::from_ref(action);
        // SAFETY: no handler is installed; signals that cannot be changed report an error only.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, old, SET_BYTES) };
    }
    let none = 0u64;
    let how = libc::SIG_SETMASK;
    // SAFETY: the kernel reads the eight bytes of `none`.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const none, old, SET_BYTES) };
}

/// Blocks SIGCHLD and returns a non-blocking descriptor that becomes readable instead.
pub(crate) fn child_deaths() -> io::Result<OwnedFd> {
    // SAFETY: the set is filled in before it is used; the descriptor is new and ours.
    unsafe {
        let mut deaths = std::mem::zeroed();
        libc::sigemptyset(&mut deaths);
        libc::sigaddset(&mut deaths, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &deaths, std::ptr::null_mut());
        match libc::signalfd(-1, &deaths, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}
