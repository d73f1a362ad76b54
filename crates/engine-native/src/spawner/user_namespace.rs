//! Making a user namespace that lives on as a descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::CapabilitySets;

use super::scaffold::Scaffold;
use crate::limits::UID_RANGE;
use crate::machine::WORKLOAD_ID;

/// Maps ids 0..65536 to `uid_base`... The namespace is owned by `uid_base`, so that the kernel
/// counts what one machine uses (inotify instances, locked memory, …) apart from all others.
pub(super) fn make(scaffold: &Scaffold, uid_base: u32) -> io::Result<OwnedFd> {
    let mut stack = vec![0; HOLDER_STACK_BYTES];
    let (holder, line) = if scaffold.rootless {
        (clone_holder(&mut stack)?, format!("{WORKLOAD_ID} 0 1"))
    } else {
        let own = become_owner(uid_base)?;
        let holder = clone_holder(&mut stack);
        become_root_again(own);
        (holder?, format!("0 {uid_base} {UID_RANGE}"))
    };
    let made = map(&scaffold.proc, holder.as_raw_nonzero().get(), &line);
    rustix::process::kill_process(holder, Signal::KILL)?;
    rustix::process::waitpid(Some(holder), WaitOptions::empty())?;
    made
}

/// Enough to call `pause`.
const HOLDER_STACK_BYTES: usize = 16 * 1024;

/// A process that does nothing but keep its new namespace alive until it is mapped. It shares the
/// spawner's memory: copying that would take longer than all the rest.
fn clone_holder(stack: &mut [u8]) -> io::Result<Pid> {
    let flags = libc::CLONE_VM | libc::CLONE_NEWUSER | libc::SIGCHLD;
    let spawner = std::ptr::without_provenance_mut(std::process::id() as usize);
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the holder runs on the top of a stack that outlives it, touches no other memory, and
    // is killed and reaped before `make` returns.
    let pid = unsafe { libc::clone(hold, top.cast(), flags, spawner) };
    match Pid::from_raw(pid) {
        Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `spawner` is its pid and no pointer.
extern "C" fn hold(spawner: *mut libc::c_void) -> libc::c_int {
    // SAFETY: prctl takes numbers here. A spawner that dies takes us with it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: getppid and pause have no preconditions; the parent's SIGKILL ends the latter. A
    // spawner that died before we asked for its death is not our parent any more.
    unsafe {
        while libc::getppid() as usize == spawner.addr() {
            libc::pause();
        }
    }
    0
}

fn map(proc: impl AsFd, pid: i32, line: &str) -> io::Result<OwnedFd> {
    for file in ["uid_map", "gid_map"] {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let map = rustix::fs::openat(&proc, format!("{pid}/{file}"), flags, Mode::empty())?;
        rustix::io::write(&map, line.as_bytes())?;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&proc, format!("{pid}/ns/user"), flags, Mode::empty())?)
}

/// Another effective user id with all capabilities; returns them. As before when it fails.
fn become_owner(uid: u32) -> io::Result<CapabilitySets> {
    let own = rustix::thread::capabilities(None)?;
    set_effective_uid(uid)?;
    // Leaving uid 0 cleared the effective set, but not the permitted one.
    if let Err(error) = rustix::thread::set_capabilities(None, own) {
        become_root_again(own);
        return Err(error.into());
    }
    Ok(own)
}

/// A spawner that does not know who it is must make nothing more: its death is noticed, takes a
/// holder of a namespace with it, and another spawner takes its place.
fn become_root_again(own: CapabilitySets) {
    let again = set_effective_uid(0);
    if again.and_then(|()| Ok(rustix::thread::set_capabilities(None, own)?)).is_err() {
        std::process::abort();
    }
}

/// The raw syscall: glibc's wrapper would signal threads that do not exist.
fn set_effective_uid(uid: u32) -> io::Result<()> {
    // SAFETY: setresuid takes three numbers; -1 keeps an id.
    let result = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
