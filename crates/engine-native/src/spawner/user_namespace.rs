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
        let owner = OtherOwner::become_owner(uid_base)?;
        let holder = clone_holder(&mut stack);
        owner.undo()?;
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
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the holder runs on the top of a stack that outlives it, touches no other memory, and
    // is killed and reaped before `make` returns.
    let pid = unsafe { libc::clone(hold, top.cast(), flags, std::ptr::null_mut()) };
    match Pid::from_raw(pid) {
        Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn hold(_: *mut libc::c_void) -> libc::c_int {
    loop {
        // SAFETY: pause has no preconditions; the parent's SIGKILL ends it.
        unsafe { libc::pause() };
    }
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

/// The spawner with another effective user id but all its capabilities.
struct OtherOwner {
    own: CapabilitySets,
}

impl OtherOwner {
    fn become_owner(uid: u32) -> io::Result<Self> {
        let own = rustix::thread::capabilities(None)?;
        set_effective_uid(uid)?;
        // Leaving uid 0 cleared the effective set, but not the permitted one.
        rustix::thread::set_capabilities(None, own)?;
        Ok(Self { own })
    }

    fn undo(self) -> io::Result<()> {
        set_effective_uid(0)?;
        Ok(rustix::thread::set_capabilities(None, self.own)?)
    }
}

/// The raw syscall: glibc's wrapper would signal threads that do not exist.
fn set_effective_uid(uid: u32) -> io::Result<()> {
    // SAFETY: setresuid takes three numbers; -1 keeps an id.
    let result = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
