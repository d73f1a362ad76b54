//! What the kernel and the daemon's rights cannot give, found without making a machine.

use std::io;
use std::path::Path;

use sandbank_engine::Control;

use super::Shortcoming;
use crate::cgroup::Cgroups;

/// Asked once at start; none of it changes while the daemon runs.
pub(in crate::lifecycle) fn find_shortcomings(cgroups: &dyn Cgroups) -> Vec<Shortcoming> {
    let mut found = Vec::new();
    let mut lacks = |control, reason: String, fix: &str| {
        found.push(Shortcoming { control, reason, fix: fix.to_owned() });
    };
    if !rustix::process::geteuid().is_root() {
        let reason = "without root, runner and commands are the same user".to_owned();
        lacks(Control::SeparateRunnerIdentity, reason, "run the daemon as root");
    }
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "uts"] {
        if !Path::new("/proc/self/ns").join(name).exists() {
            let reason = format!("the kernel has no {name} namespaces");
            lacks(Control::Namespaces, reason, "use a kernel that has them");
        }
    }
    if let Err(reason) = user_namespaces() {
        lacks(Control::UserNamespace, reason, "set the sysctl user.max_user_namespaces above 0");
    }
    if let Err(error) = seccomp() {
        let reason = format!("the kernel cannot filter system calls: {error}");
        lacks(Control::Seccomp, reason, "use a kernel built with CONFIG_SECCOMP_FILTER");
    }
    if let Err(error) = landlock_version() {
        let reason = format!("Landlock does not answer: {error}");
        lacks(Control::Landlock, reason, "use Linux 5.13 or later with landlock in the lsm= list");
    }
    for missing in cgroups.unavailable() {
        lacks(
            missing.control,
            missing.reason,
            "mount the controller, or delegate it to the daemon",
        );
    }
    found
}

fn user_namespaces() -> Result<(), String> {
    if !Path::new("/proc/self/ns/user").exists() {
        return Err("the kernel has no user namespaces".to_owned());
    }
    let most = std::fs::read_to_string("/proc/sys/user/max_user_namespaces");
    match most.as_deref().map(str::trim) {
        Ok("0") => Err("user namespaces are turned off".to_owned()),
        _ => Ok(()),
    }
}

/// Whether a filter may kill, which is as old as the rest of what the profile needs.
fn seccomp() -> io::Result<()> {
    let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: the kernel reads four bytes, which outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's Landlock interface version.
pub(super) fn landlock_version() -> io::Result<i64> {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel only answers a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    if version > 0 { Ok(version) } else { Err(io::Error::last_os_error()) }
}
