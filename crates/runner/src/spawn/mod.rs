//! Starting a process: everything is prepared here, the child only makes system calls.
//!
//! The child shares the runner's memory until it execs (as vfork does), which keeps the start
//! cheap however large the runner is, and lets the child report a failed step in that memory.

mod child;
mod clone;
mod program;
mod stack;

pub(crate) use program::Program;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::privileges::{self, FileIdentity};
use crate::stamp::Stamp;
use child::{Identity, Outcome, Shell, Task};
use stack::Stack;

/// Descriptors and place of one child.
pub(crate) struct Surroundings<'a> {
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// The three above are a terminal that shall become the child's controlling one.
    pub(crate) terminal: bool,
    pub(crate) cwd: BorrowedFd<'a>,
    pub(crate) placement: Placement<'a>,
    /// Without a cgroup of its own.
    pub(crate) stamp: Option<Stamp>,
    pub(crate) shell: Option<ShellEnds<'a>>,
}

/// What a shell that remembers has beside its streams.
#[derive(Clone, Copy)]
pub(crate) struct ShellEnds<'a> {
    /// Becomes its controlling terminal.
    pub(crate) terminal: BorrowedFd<'a>,
    /// Its own under these numbers, from `first` on. None of them has such a number here.
    pub(crate) ends: [BorrowedFd<'a>; SHELL_ENDS],
    pub(crate) first: i32,
}

pub(crate) const SHELL_ENDS: usize = 5;

/// How the child gets into its cgroup.
#[derive(Clone, Copy)]
pub(crate) enum Placement<'a> {
    /// It stays in the runner's.
    Inherit,
    /// The kernel puts it into this directory at clone.
    Clone(BorrowedFd<'a>),
    /// It writes itself into this file.
    Write(BorrowedFd<'a>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("the kernel refuses a new process: {0}")]
    Clone(io::Error),
    #[error("the new process could not {step}: {error}")]
    Step { step: &'static str, error: io::Error },
}

/// What all children have in common.
pub(crate) struct Spawner {
    stack: Stack,
    identity: Option<Identity>,
    /// What commands get beside the runner's own filter.
    filter: Option<privileges::Program>,
    /// Above the runner's own, so that a command dies first when memory runs out.
    oom_score: CString,
    /// The runner raised its own limit of open descriptors; children get the old one.
    open_files: libc::rlimit,
}

impl Spawner {
    pub(crate) fn new(
        identity: FileIdentity,
        filter: Option<privileges::Program>,
        open_files: libc::rlimit,
    ) -> io::Result<Self> {
        let is_effective = identity.is_effective();
        let identity = identity.workload();
        let identity = identity.map(|(uid, gid)| Identity { uid, gid, is_effective });
        Ok(Self {
            stack: Stack::new()?,
            identity,
            filter,
            oom_score: command_oom_score(),
            open_files,
        })
    }

    /// Starts the program and returns its pid once it was exec'd, or failed to.
    ///
    /// A program that cannot be exec'd is a process that says so on its stderr and exits with
    /// 127 or 126, as from a shell.
    pub(crate) fn spawn(
        &self,
        program: &mut Program,
        surroundings: &Surroundings<'_>,
    ) -> Result<i32, SpawnError> {
        let filter = self.filter.as_ref().map(privileges::Program::as_fprog);
        let mut task = Task {
            program: program.pointers(),
            stdin: surroundings.stdin.as_raw_fd(),
            stdout: surroundings.stdout.as_raw_fd(),
            stderr: surroundings.stderr.as_raw_fd(),
            terminal: surroundings.terminal,
            cwd: surroundings.cwd.as_raw_fd(),
            cgroup_file: match surroundings.placement {
                Placement::Write(file) => Some(file.as_raw_fd()),
                _ => None,
            },
            identity: self.identity,
            filter: filter.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            oom_score: self.oom_score.as_ptr(),
            open_files: self.open_files,
            stamp: surroundings.stamp.map(Stamp::as_limit),
            shell: surroundings.shell.map(|shell| Shell {
                terminal: shell.terminal.as_raw_fd(),
                ends: shell.ends.map(|end| end.as_raw_fd()),
                first: shell.first,
            }),
            outcome: Outcome::default(),
        };
        let cgroup = match surroundings.placement {
            Placement::Clone(directory) => Some(directory),
            _ => None,
        };
        let pid = {
            let _blocked = SignalsBlocked::new();
            clone::vfork(&self.stack, &mut task, cgroup).map_err(SpawnError::Clone)?
        };
        match task.outcome.failure() {
            None => Ok(pid),
            Some((step, error)) => {
                reap(pid);
                Err(SpawnError::Step { step, error })
            }
        }
    }
}

fn command_oom_score() -> CString {
    const ABOVE_RUNNER: i32 = 300;
    const HIGHEST: i32 = 1_000;
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let score = own.trim().parse().unwrap_or(0).max(0) + ABOVE_RUNNER;
    CString::new(score.min(HIGHEST).to_string()).expect("digits contain no NUL")
}

/// A handler that ran in the child would run in the runner's memory, so none may.
struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    fn new() -> Self {
        // SAFETY: both sets are plain memory that the calls fill in.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Self(before)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// For a child that never became a command.
fn reap(pid: i32) {
    // SAFETY: a null status is allowed; the pid is our own unreaped child.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}
