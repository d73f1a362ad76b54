//! Whose rights the runner uses on files.
//!
//! With a workload identity every file operation of the runner has exactly the workload's
//! rights and ownership, whatever path a client sends. [`AsRunner`] lifts that for the moment
//! of a cgroup operation and for nothing else.
//!
//! A kernel that tells no users of files apart (gVisor's) goes by the effective user. There the
//! runner's effective user and group are the workload's; the real and the saved ones stay its own,
//! so that the workload can neither signal nor trace it, and it can still start commands.

use std::io;

use sandbank_protocol::WorkloadIdentity;

use super::ConfineError;

#[derive(Debug, Clone, Copy)]
pub(crate) struct FileIdentity {
    workload: Option<(u32, u32)>,
    by: By,
}

/// Which ids the kernel looks at when a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    FileIds,
    EffectiveIds,
}

impl FileIdentity {
    pub(crate) fn new(workload: Option<&WorkloadIdentity>) -> Self {
        let workload = workload.map(|workload| (workload.uid, workload.gid));
        let by = if has_file_ids() { By::FileIds } else { By::EffectiveIds };
        Self { workload, by }
    }

    /// Whom commands run as: user and group.
    pub(crate) fn workload(&self) -> Option<(u32, u32)> {
        self.workload
    }

    /// Whether a child has to become the runner again before it can become the workload.
    pub(crate) fn is_effective(&self) -> bool {
        self.workload.is_some() && self.by == By::EffectiveIds
    }

    pub(super) fn become_workload(&self) -> Result<(), ConfineError> {
        let Some((uid, gid)) = self.workload else { return Ok(()) };
        drop_groups()?;
        self.by.set(uid, gid);
        if self.by.get() == (uid, gid) {
            return Ok(());
        }
        let step = match self.by {
            By::FileIds => "setfsuid",
            By::EffectiveIds => "setresuid",
        };
        Err(ConfineError::Kernel { step, error: io::Error::from_raw_os_error(libc::EPERM) })
    }
}

/// Files of a group that whoever started us put us into are not the workload's. Docker does so with
/// the group of root.
fn drop_groups() -> Result<(), ConfineError> {
    // SAFETY: sizes of 0: the first asks for the number of groups only, the second sets none. The C
    // library's would do it to every thread, and there is one.
    let dropped = unsafe {
        libc::getgroups(0, std::ptr::null_mut()) == 0
            || libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) == 0
    };
    if dropped { Ok(()) } else { Err(ConfineError::last("setgroups")) }
}

fn has_file_ids() -> bool {
    // SAFETY: plain integers; -1 changes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_setfsuid, u32::MAX) };
    answer != -1 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}

impl By {
    /// The group first: it needs the rights that the user change may take. The calls concern this
    /// thread only, which those of the C library would not.
    fn set(self, uid: u32, gid: u32) {
        const UNCHANGED: u32 = u32::MAX;
        // SAFETY: plain integers.
        unsafe {
            match self {
                Self::FileIds => {
                    libc::setfsgid(gid);
                    libc::setfsuid(uid);
                }
                Self::EffectiveIds => {
                    libc::syscall(libc::SYS_setresgid, UNCHANGED, gid, UNCHANGED);
                    libc::syscall(libc::SYS_setresuid, UNCHANGED, uid, UNCHANGED);
                }
            }
        }
    }

    /// What is in force. The calls that set file ids report no error; asking again with an
    /// impossible id tells.
    fn get(self) -> (u32, u32) {
        // SAFETY: plain integers; -1 changes nothing.
        unsafe {
            match self {
                Self::FileIds => (libc::setfsuid(u32::MAX) as u32, libc::setfsgid(u32::MAX) as u32),
                Self::EffectiveIds => (libc::geteuid(), libc::getegid()),
            }
        }
    }

    /// The runner's own.
    fn own(self) -> (u32, u32) {
        // SAFETY: plain integers out.
        unsafe {
            match self {
                Self::FileIds => (libc::geteuid(), libc::getegid()),
                Self::EffectiveIds => (libc::getuid(), libc::getgid()),
            }
        }
    }
}

/// While it lives, file operations of this thread have the runner's own rights.
pub(crate) struct AsRunner {
    back_to: Option<(u32, u32)>,
    by: By,
}

impl AsRunner {
    pub(crate) fn enter(identity: FileIdentity) -> Self {
        let FileIdentity { workload, by } = identity;
        if workload.is_some() {
            let (uid, gid) = by.own();
            by.set(uid, gid);
        }
        Self { back_to: workload, by }
    }
}

impl Drop for AsRunner {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.back_to {
            self.by.set(uid, gid);
        }
    }
}
