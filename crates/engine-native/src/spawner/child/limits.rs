//! Session, signals and resource limits: what the runner and every command inherit.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};

use crate::limits::MAX_LOCKED_BYTES;
use crate::spawner::wire::MachinePlan;

/// When the host runs out of memory, machines go before the host's own services.
const OOM_SCORE_ADJUSTMENT: &[u8] = b"300";

/// An ordinary process, whatever the daemon was made: a cpu cgroup takes no real-time one.
pub(super) fn reset_scheduling() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: both calls take numbers and a structure that outlives them.
    let result = unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn start_session() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::umask(Mode::from_bits_retain(0o022));
    // SAFETY: plain signal calls; ignored signals and the mask would survive exec.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let score = rustix::fs::open("/proc/self/oom_score_adj", flags, Mode::empty())?;
    rustix::io::write(&score, OOM_SCORE_ADJUSTMENT)?;
    Ok(())
}

pub(super) fn apply(plan: &MachinePlan) -> io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, plan.open_files),
        (Resource::Nproc, plan.processes),
        (Resource::Memlock, MAX_LOCKED_BYTES),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
    ];
    for (resource, wanted) in limits {
        // Only the host's administrator may raise a hard limit, not even always the daemon.
        let most = rustix::process::getrlimit(resource).maximum;
        let value = most.map_or(wanted, |most| most.min(wanted));
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        rustix::process::setrlimit(resource, limit)?;
    }
    Ok(())
}
