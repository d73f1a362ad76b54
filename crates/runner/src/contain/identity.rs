//! Who this process is, who it cannot become, and the first process, which is somebody else.

use sandbank_protocol::containment::BatteryPlan;

use super::answer::{Answer, all_refused, answered, call, failed, not_tried};
use super::child;

pub(super) fn nested_user_namespace(_: &BatteryPlan) -> Answer {
    match std::fs::read_to_string("/proc/sys/user/max_user_namespaces") {
        Ok(most) if most.trim() == "0" => Ok("the kernel allows none below this one".to_owned()),
        Ok(most) => failed(format!("the kernel allows {}", most.trim())),
        Err(error) => failed(format!("the limit cannot be read: {error}")),
    }
}

pub(super) fn workload(plan: &BatteryPlan) -> Answer {
    let Some((uid, gid)) = plan.identity else {
        return not_tried("which user commands should be is not known");
    };
    let (mut uids, mut gids) = ([0; 3], [0; 3]);
    // SAFETY: the kernel fills in six numbers; a size of 0 asks for the number of groups only.
    let groups = unsafe {
        libc::getresuid(&raw mut uids[0], &raw mut uids[1], &raw mut uids[2]);
        libc::getresgid(&raw mut gids[0], &raw mut gids[1], &raw mut gids[2]);
        libc::getgroups(0, std::ptr::null_mut())
    };
    if uids != [uid; 3] || gids != [gid; 3] || groups != 0 {
        return failed(format!("users {uids:?}, groups {gids:?} and {groups} more"));
    }
    let (own, root) = (uid as usize, 0);
    if call(libc::SYS_setresuid, [own, own, own, 0, 0]).is_err() {
        return failed("its own identity cannot be set again");
    }
    let attempts = [
        ("setresgid to root", call(libc::SYS_setresgid, [root, root, root, 0, 0])),
        ("setgroups", call(libc::SYS_setgroups, [0, 0, 0, 0, 0])),
        ("setresuid to root", call(libc::SYS_setresuid, [root, root, root, 0, 0])),
    ];
    let others = attempts.iter().filter(|(_, result)| *result != Err(libc::EPERM));
    let surprises: Vec<_> =
        others.map(|(name, result)| format!("{name} {}", answered(result))).collect();
    all_refused(&surprises, format!("user {uid}, group {gid}, and none other to be had"))
}

const FIRST: usize = 1;

pub(super) fn first_process(_: &BatteryPlan) -> Answer {
    let sleeper = child::sleeper();
    let signalled = match sleeper {
        // SAFETY: our own child; signal 0 only asks.
        Ok(pid) => unsafe { libc::kill(pid, 0) },
        Err(error) => return failed(format!("no child to compare with: error {error}")),
    };
    if let Ok(pid) = sleeper {
        let _ = child::end(pid);
    }
    if signalled != 0 {
        return failed("its own child cannot be signalled");
    }
    let mut surprises = Vec::new();
    let mut refused = |name: &str, result: Result<usize, i32>| match result {
        Err(libc::EPERM | libc::ESRCH | libc::EACCES) => {}
        other => surprises.push(format!("{name} {}", answered(&other))),
    };
    refused("a signal to it", call(libc::SYS_kill, [FIRST, 0, 0, 0, 0]));
    let seize = call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as usize, FIRST, 0, 0, 0]);
    refused("tracing it", seize);
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(0x1000), iov_len: 1 };
    let (local, remote) = ((&raw const local) as usize, (&raw const remote) as usize);
    for (name, number) in [
        ("reading its memory", libc::SYS_process_vm_readv),
        ("writing its memory", libc::SYS_process_vm_writev),
    ] {
        refused(name, call(number, [FIRST, local, 1, remote, 1]));
    }
    if let Ok(pidfd) = call(libc::SYS_pidfd_open, [FIRST, 0, 0, 0, 0]) {
        refused("a signal by descriptor", call(libc::SYS_pidfd_send_signal, [pidfd, 0, 0, 0, 0]));
        for descriptor in 0..4 {
            let taken = call(libc::SYS_pidfd_getfd, [pidfd, descriptor, 0, 0, 0]);
            refused("taking its descriptor", taken);
        }
        let _ = call(libc::SYS_close, [pidfd, 0, 0, 0, 0]);
    }
    for file in ["mem", "environ", "maps", "exe", "root", "cwd", "fd/0"] {
        if std::fs::File::open(format!("/proc/1/{file}")).is_ok() {
            surprises.push(format!("/proc/1/{file} opens"));
        }
    }
    all_refused(&surprises, "no signal, no trace, no memory, no descriptor, no file of it")
}
