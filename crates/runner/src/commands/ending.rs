//! How a reaped process's status becomes the command's one ending. Pure.

use std::collections::BTreeMap;

use sandbank_protocol::Ending;

/// The kernel's word on a process that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitStatus(pub(crate) i32);

/// What was done to the command while it ran.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    pub(crate) timed_out: bool,
    /// Signals that callers asked for, and who asked last.
    pub(crate) requested: BTreeMap<i32, String>,
    /// The kernel killed it for memory.
    pub(crate) oom_killed: bool,
}

/// Whether it died of SIGKILL and nobody is known to have sent it.
pub(crate) fn is_unexplained_kill(status: WaitStatus, circumstances: &Circumstances) -> bool {
    libc::WIFSIGNALED(status.0)
        && libc::WTERMSIG(status.0) == libc::SIGKILL
        && !circumstances.timed_out
        && !circumstances.requested.contains_key(&libc::SIGKILL)
}

pub(crate) fn decide(status: WaitStatus, circumstances: &Circumstances) -> Ending {
    if circumstances.timed_out {
        return Ending::TimedOut;
    }
    if libc::WIFEXITED(status.0) {
        return Ending::Exited { code: libc::WEXITSTATUS(status.0) };
    }
    let signal = libc::WTERMSIG(status.0);
    match circumstances.requested.get(&signal) {
        Some(by) => Ending::Killed { by: by.clone(), signal },
        None if signal == libc::SIGKILL && circumstances.oom_killed => Ending::OomKilled,
        None => Ending::Signaled { signal },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXITED_3: WaitStatus = WaitStatus(3 << 8);
    const SIGKILLED: WaitStatus = WaitStatus(libc::SIGKILL);
    const SEGFAULTED: WaitStatus = WaitStatus(libc::SIGSEGV | 0x80);

    fn requested(signal: i32) -> Circumstances {
        let requested = [(signal, "ann".to_owned())].into();
        Circumstances { requested, ..Circumstances::default() }
    }

    #[test]
    fn each_death_has_its_own_ending() {
        let quiet = Circumstances::default();
        let oom = Circumstances { oom_killed: true, ..Circumstances::default() };
        let late = Circumstances { timed_out: true, ..requested(libc::SIGKILL) };
        let killed = Ending::Killed { by: "ann".to_owned(), signal: libc::SIGKILL };
        let cases = [
            (EXITED_3, &quiet, Ending::Exited { code: 3 }),
            (SIGKILLED, &quiet, Ending::Signaled { signal: libc::SIGKILL }),
            (SEGFAULTED, &quiet, Ending::Signaled { signal: libc::SIGSEGV }),
            (SIGKILLED, &oom, Ending::OomKilled),
            (SEGFAULTED, &oom, Ending::Signaled { signal: libc::SIGSEGV }),
            (SIGKILLED, &requested(libc::SIGKILL), killed),
            (SIGKILLED, &requested(libc::SIGTERM), Ending::Signaled { signal: libc::SIGKILL }),
            (EXITED_3, &requested(libc::SIGTERM), Ending::Exited { code: 3 }),
            (EXITED_3, &late, Ending::TimedOut),
            (SIGKILLED, &late, Ending::TimedOut),
        ];
        for (status, circumstances, ending) in cases {
            assert_eq!(decide(status, circumstances), ending, "{status:?} {circumstances:?}");
        }
    }

    #[test]
    fn a_requested_kill_is_not_an_out_of_memory_kill() {
        let both = Circumstances { oom_killed: true, ..requested(libc::SIGKILL) };
        assert!(matches!(decide(SIGKILLED, &both), Ending::Killed { .. }));
    }
}
