//! From the host's root to the root of a user namespace that may do next to nothing.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType};
use sandbank_engine::Control;

use super::Parts;
use crate::machine::WORKLOAD_ID;
use crate::spawner::scaffold::Scaffold;
use crate::spawner::wire::MachinePlan;
use crate::spawner::{Failure, Step};

/// What the runner needs to start commands as the workload and to end them, and to shrink its own
/// bounding set.
const RUNNER_CAPABILITIES: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETPCAP);

/// Enters the user namespace as its root, with every capability in it and none outside.
pub(super) fn assume(
    scaffold: &Scaffold,
    plan: &MachinePlan,
    parts: &Parts,
) -> Result<(), Failure> {
    let user = Some(LinkNameSpaceType::User);
    rustix::thread::move_into_link_name_space(parts.user_namespace.as_fd(), user)
        .map_err(io::Error::from)
        .map_err(Failure::at(Step::UserNamespace))?;
    let identity = if scaffold.rootless { remain_user() } else { become_root() };
    identity.and_then(|()| new_session_keyring()).map_err(Failure::at(Step::Identity))?;
    if plan.omitted.contains(Control::UserNamespace) {
        return Ok(());
    }
    forbid_nesting(scaffold).map_err(Failure::at(Step::NestedNamespaces))
}

fn become_root() -> io::Result<()> {
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    Ok(())
}

/// The namespace maps the daemon's user to the workload, and has nobody else to become. Groups
/// cannot be given up without root.
fn remain_user() -> io::Result<()> {
    let (user, group) = (Uid::from_raw(WORKLOAD_ID), Gid::from_raw(WORKLOAD_ID));
    rustix::thread::set_thread_res_gid(group, group, group)?;
    Ok(rustix::thread::set_thread_res_uid(user, user, user)?)
}

/// The kernel's own count of user namespaces below this one, as a second fence behind seccomp.
/// The file belongs to the namespace of whoever opens it.
fn forbid_nesting(scaffold: &Scaffold) -> io::Result<()> {
    let path = "sys/user/max_user_namespaces";
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let most = rustix::fs::openat(&scaffold.proc, path, flags, Mode::empty())?;
    rustix::io::write(&most, b"0")?;
    Ok(())
}

/// The daemon's keys are not the machine's.
fn new_session_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: i32 = 1;
    // SAFETY: a null name asks for an anonymous keyring.
    let result = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    };
    match io::Error::last_os_error() {
        _ if result >= 0 => Ok(()),
        error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        error => Err(error),
    }
}

/// All but the runner's four capabilities, for it and everything it ever starts. Without root there
/// is no other identity that the runner could need one for.
pub(super) fn drop_privileges(scaffold: &Scaffold, plan: &MachinePlan) -> Result<(), Failure> {
    let kept = if scaffold.rootless { CapabilitySet::empty() } else { RUNNER_CAPABILITIES };
    if !plan.omitted.contains(Control::NoCapabilities) {
        shrink_bounding_set(kept).map_err(Failure::at(Step::Capabilities))?;
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)
        .map_err(io::Error::from)
        .map_err(Failure::at(Step::Capabilities))?;
    if plan.omitted.contains(Control::NoNewPrivileges) {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true)
        .map_err(io::Error::from)
        .map_err(Failure::at(Step::NoNewPrivileges))
}

fn shrink_bounding_set(kept: CapabilitySet) -> io::Result<()> {
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Numbers rise without gaps, so the first unknown one is past the last.
            Err(rustix::io::Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
