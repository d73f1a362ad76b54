//! Exactly the descriptors the runner is told about, at the numbers it is told, and its exec.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};

use super::Parts;
use crate::limits::{MAX_BINDS, MAX_LOWER};
use crate::spawner::wire::runner_fd;

/// Descriptors of a message that are not layers or binds, with the spawner's own.
const OTHERS: usize = 30;

/// Moving a descriptor to its place must not overwrite one that is still needed.
const _: () = assert!(MAX_LOWER + MAX_BINDS + OTHERS < runner_fd::LISTENER as usize);

/// Standard streams on `/dev/null` but for the log, the runner's descriptors in place, all else closed on exec.
pub(super) fn arrange(parts: &Parts) -> io::Result<()> {
    close_on_exec_from(3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for (stream, fd) in [(0, &null), (1, &null), (2, &parts.log)] {
        duplicate(fd, stream)?;
    }
    let wanted = [
        (Some(&parts.listener), runner_fd::LISTENER),
        (Some(&parts.config), runner_fd::CONFIG),
        (parts.command_cgroup.as_ref(), runner_fd::CGROUP),
        (parts.oom_events.as_ref(), runner_fd::OOM_EVENTS),
    ];
    for (fd, number) in wanted {
        if let Some(fd) = fd {
            duplicate(fd, number)?;
        }
    }
    Ok(())
}

/// Returns only when it failed.
pub(super) fn exec(runner: &OwnedFd) -> io::Error {
    let config = c_number(runner_fd::CONFIG);
    let arguments = [
        c"runner".as_ptr(),
        c"serve".as_ptr(),
        c"--config-fd".as_ptr(),
        config.as_ptr(),
        std::ptr::null(),
    ];
    // No environment: the machine's root can read its first process's.
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: both arrays end with null and, with the strings, outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            runner.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

fn c_number(number: i32) -> CString {
    CString::new(number.to_string()).expect("digits contain no NUL")
}

fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: changes flags of descriptors only.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Onto exactly this number, inherited by exec.
fn duplicate(fd: &OwnedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: the target is a standard stream or above every descriptor in use, so no owned
    // descriptor is closed behind its owner's back.
    match unsafe { libc::dup2(fd.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
