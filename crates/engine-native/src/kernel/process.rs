//! A process named so that a recycled pid is never mistaken for it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// How a process ended, as `waitpid` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitStatus {
    Exited(i32),
    Signaled(i32),
}

impl ExitStatus {
    /// From the kernel's wait status; none while the process is only stopped or continued.
    pub(crate) fn from_wait(status: i32) -> Option<Self> {
        if libc::WIFEXITED(status) {
            Some(Self::Exited(libc::WEXITSTATUS(status)))
        } else if libc::WIFSIGNALED(status) {
            Some(Self::Signaled(libc::WTERMSIG(status)))
        } else {
            None
        }
    }
}

/// Pid and start time (clock ticks since boot): unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessKey {
    pub(crate) pid: i32,
    pub(crate) start_time: u64,
}

impl ProcessKey {
    /// The process that has this pid now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let start_time = start_time(&stat)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable process stat"))?;
        Ok(Self { pid, start_time })
    }

    /// A descriptor for it, or none when it is gone. The start time is compared after the
    /// descriptor pins the process, so the answer is never about a successor.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match Self::of(self.pid) {
            Ok(found) if found == self => Ok(Some(pidfd)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// SIGKILL; a process that is gone already is fine.
pub(crate) fn kill(pidfd: impl AsFd) -> io::Result<()> {
    match rustix::process::pidfd_send_signal(pidfd, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The status of a dead process that was not our child; kernels before 6.15 cannot tell.
pub(crate) fn exit_status_of(pidfd: impl AsFd) -> Option<ExitStatus> {
    // SAFETY: `pidfd_info` is plain integers, for which zero is valid.
    let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
    info.mask = u64::from(libc::PIDFD_INFO_EXIT);
    // SAFETY: the request writes at most the size of the structure, which it encodes.
    let result =
        unsafe { libc::ioctl(pidfd.as_fd().as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) };
    let told = result == 0 && info.mask & u64::from(libc::PIDFD_INFO_EXIT) != 0;
    if told { ExitStatus::from_wait(info.exit_code) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_does_not_shift_the_fields() {
        let fields = (3..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(start_time(&format!("7 (a) b) {fields}")), Some(22));
    }

    #[test]
    fn this_process_is_found_and_a_successor_is_not_mistaken_for_it() {
        let own = ProcessKey::of(std::process::id() as i32).unwrap();
        assert!(own.open().unwrap().is_some());
        let earlier = ProcessKey { start_time: own.start_time - 1, ..own };
        assert!(earlier.open().unwrap().is_none());
    }
}
