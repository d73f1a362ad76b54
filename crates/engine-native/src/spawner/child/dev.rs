//! `/dev`: a clone of the spawner's template, with terminals and shared memory of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;

use super::root::tmpfs;
use crate::kernel::mount::{
    NODEV, NOEXEC, NOSUID, RDONLY, attach, clone_tree, new_filesystem, open_target,
    set_attributes,
};
use crate::limits::MAX_PTYS;
use crate::spawner::scaffold;
use crate::spawner::wire::MachinePlan;

/// The group that owns terminals, by convention.
const TTY_GROUP: u32 = 5;

pub(super) fn mount(root: &OwnedFd, plan: &MachinePlan) -> io::Result<()> {
    let dev = clone_tree(CWD, scaffold::DEV, false)?;
    // Devices still open for writing: that is not a write to the file system.
    set_attributes(dev.as_fd(), RDONLY | NOSUID | NOEXEC)?;
    attach(&dev, open_target(root, "dev")?)?;

    let (group, max) = ((plan.uid_base + TTY_GROUP).to_string(), MAX_PTYS.to_string());
    let options =
        [("gid", group.as_str()), ("mode", "620"), ("ptmxmode", "666"), ("max", max.as_str())];
    let terminals = new_filesystem("devpts", &options, NOSUID | NOEXEC)?;
    attach(terminals, open_target(&dev, "pts")?)?;

    let shared = tmpfs(plan.shm_bytes, "1777", plan.uid_base, NOSUID | NODEV | NOEXEC)?;
    attach(shared, open_target(&dev, "shm")?)
}
