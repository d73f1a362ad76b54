//! A forked child that does one thing and ends.

use super::answer::last_error;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(i32),
    Signaled(i32),
}

/// Runs `work` in a child and waits; its result is the exit code.
pub(super) fn run(work: impl FnOnce() -> i32) -> Result<Ended, i32> {
    let pid = start(work)?;
    wait(pid)
}

/// A child that sleeps until it is killed.
pub(super) fn sleeper() -> Result<i32, i32> {
    start(|| {
        loop {
            // SAFETY: waits for a signal; nothing is handled, so one ends the process.
            unsafe { libc::pause() };
        }
    })
}

pub(super) fn end(pid: i32) -> Result<Ended, i32> {
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    wait(pid)
}

fn start(work: impl FnOnce() -> i32) -> Result<i32, i32> {
    // SAFETY: this process has one thread, so its child may do whatever it could.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        0 => {
            let code = work();
            // SAFETY: ends the child without running what belongs to its parent.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid),
    }
}

pub(super) fn wait(pid: i32) -> Result<Ended, i32> {
    let mut status = 0;
    loop {
        // SAFETY: our own child; the kernel fills in the status.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
            break;
        }
        match last_error() {
            libc::EINTR => {}
            error => return Err(error),
        }
    }
    if libc::WIFSIGNALED(status) {
        return Ok(Ended::Signaled(libc::WTERMSIG(status)));
    }
    Ok(Ended::Exited(libc::WEXITSTATUS(status)))
}
