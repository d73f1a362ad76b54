//! Making a user namespace that lives on as a descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions};
use rustix::thread::CapabilitySets;

use crate::kernel::clone::{Cloned, clone_process};
use crate::kernel::process::kill;
use crate::limits::UID_RANGE;

/// Maps ids 0..65536 to `uid_base`... The namespace is owned by `uid_base`, so that the kernel
/// counts what one machine uses (inotify instances, locked memory, …) apart from all others.
pub(super) fn make(proc: impl AsFd, uid_base: u32) -> io::Result<OwnedFd> {
    let (pid, pidfd) = clone_holder(uid_base)?;
    let made = map(proc.as_fd(), pid, uid_base);
    kill(&pidfd)?;
    rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty())?;
    made
}

/// A process that does nothing but keep its new namespace alive until it is mapped.
fn clone_holder(uid_base: u32) -> io::Result<(i32, OwnedFd)> {
    let owner = OtherOwner::become_owner(uid_base)?;
    // SAFETY: the spawner has one thread.
    let cloned = unsafe { clone_process(libc::CLONE_NEWUSER, None) };
    match cloned {
        Ok(Cloned::Child) => loop {
            // SAFETY: pause has no preconditions; the parent's SIGKILL ends it.
            unsafe { libc::pause() };
        },
        Ok(Cloned::Parent { pid, pidfd }) => {
            owner.undo()?;
            Ok((pid, pidfd))
        }
        Err(error) => {
            owner.undo()?;
            Err(error)
        }
    }
}

fn map(proc: impl AsFd, pid: i32, uid_base: u32) -> io::Result<OwnedFd> {
    let line = format!("0 {uid_base} {UID_RANGE}");
    for file in ["uid_map", "gid_map"] {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let map =
            rustix::fs::openat(&proc, format!("{pid}/{file}"), flags, Mode::empty())?;
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
