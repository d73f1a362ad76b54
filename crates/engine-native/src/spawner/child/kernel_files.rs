//! `/proc` and `/sys`: what a program needs of them, and nothing that changes the host.
//!
//! Most of what tells about the host belongs to the host's root and is unreadable without a
//! mask. The masks are for what everybody may read, and for the day that somebody is root.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;
use sandbank_engine::Control;

use crate::kernel::mount::{
    NODEV, NOEXEC, NOSUID, RDONLY, attach, attach_at, clone_tree, new_filesystem, open_target,
    set_attributes,
};
use crate::spawner::scaffold::{self, KernelFile, Scaffold};
use crate::spawner::wire::MachinePlan;
use crate::spawner::{Failure, Step};

const FROZEN: u64 = NOSUID | NODEV | NOEXEC;

pub(super) fn mount(
    scaffold: &Scaffold,
    root: &OwnedFd,
    plan: &MachinePlan,
) -> Result<(), Failure> {
    let proc = mount_proc(root, plan).map_err(Failure::at(Step::Proc))?;
    if plan.omitted.contains(Control::MaskedKernelFiles) {
        return mount_sys(root).map(drop).map_err(Failure::at(Step::Sys));
    }
    hide(&proc, &scaffold.proc_hidden).map_err(Failure::at(Step::ProcMask))?;
    fix(&proc, &scaffold.proc_fixed).map_err(Failure::at(Step::ProcMask))?;
    let sys = mount_sys(root).map_err(Failure::at(Step::Sys))?;
    hide(&sys, &scaffold.sys_hidden).map_err(Failure::at(Step::SysMask))
}

/// Of this pid namespace. Processes of other users, which is the runner, are invisible except to
/// the runner's own group.
fn mount_proc(root: &OwnedFd, plan: &MachinePlan) -> io::Result<OwnedFd> {
    let group = plan.uid_base.to_string();
    let options = [("hidepid", "2"), ("gid", group.as_str())];
    let proc = new_filesystem("proc", &options, FROZEN)?;
    attach(&proc, open_target(root, "proc")?)?;
    Ok(proc)
}

/// Of this network namespace, hence after entering it.
fn mount_sys(root: &OwnedFd) -> io::Result<OwnedFd> {
    let sys = new_filesystem("sysfs", &[], FROZEN | RDONLY)?;
    attach(&sys, open_target(root, "sys")?)?;
    Ok(sys)
}

/// Covers directories with an empty one and files with `/dev/null`.
fn hide(tree: &OwnedFd, files: &[KernelFile]) -> io::Result<()> {
    for file in files {
        let cover = if file.is_dir { scaffold::EMPTY } else { scaffold::NULL };
        attach_at(clone_tree(CWD, cover, false)?, tree, file.name)?;
    }
    Ok(())
}

fn fix(tree: &OwnedFd, files: &[KernelFile]) -> io::Result<()> {
    for file in files {
        let copy = clone_tree(tree, file.name, false)?;
        set_attributes(copy.as_fd(), FROZEN | RDONLY)?;
        attach_at(copy, tree, file.name)?;
    }
    Ok(())
}
