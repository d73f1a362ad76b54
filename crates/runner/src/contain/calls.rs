//! System calls that no program of a sandbox needs.

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, call, failed};
use super::child::{self, Ended};

/// A pointer that the kernel refuses, so that a call that passes the filter does nothing.
pub(super) const BAD: usize = 1;

/// A descriptor that is not open.
const CLOSED: usize = usize::MAX;

/// With arguments that nothing can come of. Most answer something else than EPERM without the
/// filter, whoever calls.
const KERNEL: &[(&str, libc::c_long, [usize; 5])] = &[
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [CLOSED, 0, 0, 0, 0]),
    ("io_uring_register", libc::SYS_io_uring_register, [CLOSED, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [0xffff, 0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, CLOSED, 0]),
    ("keyctl", libc::SYS_keyctl, [0xffff, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [BAD, BAD, 0, 0, 0]),
    ("request_key", libc::SYS_request_key, [BAD, BAD, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [usize::MAX, 0, 0, 0, 0]),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, [CLOSED, BAD, BAD, BAD, usize::MAX]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [CLOSED, BAD, 0, 0, 0]),
    ("fanotify_init", libc::SYS_fanotify_init, [usize::MAX, 0, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [BAD, 0, BAD, 0, 0]),
    ("finit_module", libc::SYS_finit_module, [CLOSED, BAD, 0, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [BAD, 0, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, 0, 0, usize::MAX, 0]),
    ("swapon", libc::SYS_swapon, [BAD, usize::MAX, 0, 0, 0]),
    ("swapoff", libc::SYS_swapoff, [BAD, 0, 0, 0, 0]),
    ("acct", libc::SYS_acct, [BAD, 0, 0, 0, 0]),
    ("quotactl", libc::SYS_quotactl, [usize::MAX, BAD, 0, 0, 0]),
    ("settimeofday", libc::SYS_settimeofday, [BAD, 0, 0, 0, 0]),
    ("clock_settime", libc::SYS_clock_settime, [0xffff, BAD, 0, 0, 0]),
    // Without its magic numbers it refuses whoever calls.
    ("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0]),
    ("syslog", libc::SYS_syslog, [0xffff, 0, 0, 0, 0]),
    ("sethostname", libc::SYS_sethostname, [BAD, 1, 0, 0, 0]),
    ("migrate_pages", libc::SYS_migrate_pages, [0, 0, BAD, BAD, 0]),
];

pub(super) fn kernel(_: &BatteryPlan) -> Answer {
    if call(libc::SYS_getpid, [0; 5]).is_err() {
        return failed("not even getpid answers");
    }
    let surprises = refusals(KERNEL, libc::EPERM);
    all_refused(&surprises, format!("EPERM for all {} calls", KERNEL.len()))
}

/// What answered otherwise.
pub(super) fn refusals(calls: &[(&str, libc::c_long, [usize; 5])], expected: i32) -> Vec<String> {
    let tried = calls.iter().map(|(name, number, arguments)| (name, call(*number, *arguments)));
    let others = tried.filter(|(_, result)| *result != Err(expected));
    others.map(|(name, result)| format!("{name} {}", answered(&result))).collect()
}

const NAMESPACES: [(&str, i32); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
];

pub(super) fn namespaces(_: &BatteryPlan) -> Answer {
    match child::run(|| 7) {
        Ok(Ended::Exited(7)) => {}
        other => return failed(format!("an ordinary child does not run: {other:?}")),
    }
    // Neither asks for anything: without the filter the first works, the second gives EBADF.
    let mut surprises = refusals(
        &[
            ("unshare of nothing", libc::SYS_unshare, [0; 5]),
            ("setns", libc::SYS_setns, [CLOSED, 0, 0, 0, 0]),
        ],
        libc::EPERM,
    );
    for (name, flag) in NAMESPACES {
        let result = clone_once(flag);
        if result != Err(libc::EPERM) {
            surprises.push(format!("clone with a new {name} namespace {}", answered(&result)));
        }
    }
    surprises.extend(refusals(&[("clone3", libc::SYS_clone3, [0; 5])], libc::ENOSYS));
    all_refused(&surprises, "EPERM for unshare, setns and 7 kinds of clone, ENOSYS for clone3")
}

/// A child in a new namespace, which ends at once should it come to be.
fn clone_once(flag: i32) -> Result<(), i32> {
    let flags = flag as usize | libc::SIGCHLD as usize;
    // With no stack of its own the child has a copy of ours, as after fork.
    match call(libc::SYS_clone, [flags, 0, 0, 0, 0])? {
        // SAFETY: ends the child without running what belongs to its parent.
        0 => unsafe { libc::_exit(0) },
        pid => child::wait(pid as i32).map(drop),
    }
}
