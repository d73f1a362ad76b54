//! Whose rights the runner uses on files.
//!
//! With a workload identity every file operation of the runner has exactly the workload's
//! rights and ownership, whatever path a client sends. [`AsRunner`] lifts that for the moment
//! of a cgroup operation and for nothing else.

use sandbank_protocol::WorkloadIdentity;

use super::ConfineError;

#[derive(Debug, Clone, Copy)]
pub(crate) struct FileIdentity {
    workload: Option<(u32, u32)>,
}

impl FileIdentity {
    pub(crate) fn new(workload: Option<&WorkloadIdentity>) -> Self {
        Self { workload: workload.map(|workload| (workload.uid, workload.gid)) }
    }

    /// Whom commands run as: user and group.
    pub(crate) fn workload(&self) -> Option<(u32, u32)> {
        self.workload
    }

    pub(super) fn become_workload(&self) -> Result<(), ConfineError> {
        let Some((uid, gid)) = self.workload else { return Ok(()) };
        set_file_ids(uid, gid);
        // The calls report no error; asking again with an impossible id tells what is in force.
        // SAFETY: plain integers; -1 changes nothing.
        let in_force = unsafe { (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX)) };
        if in_force == (uid as i32, gid as i32) {
            return Ok(());
        }
        let error = std::io::Error::from_raw_os_error(libc::EPERM);
        Err(ConfineError::Kernel { step: "setfsuid", error })
    }
}

/// While it lives, file operations of this thread have the runner's own rights.
pub(crate) struct AsRunner {
    back_to: Option<(u32, u32)>,
}

impl AsRunner {
    pub(crate) fn enter(identity: FileIdentity) -> Self {
        if identity.workload.is_some() {
            // SAFETY: plain integers in, plain integers out.
            let own = unsafe { (libc::geteuid(), libc::getegid()) };
            set_file_ids(own.0, own.1);
        }
        Self { back_to: identity.workload }
    }
}

impl Drop for AsRunner {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.back_to {
            set_file_ids(uid, gid);
        }
    }
}

/// The group first: it needs the rights that the user change may take.
fn set_file_ids(uid: u32, gid: u32) {
    // SAFETY: both take plain integers and concern this thread only.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
}
