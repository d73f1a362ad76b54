//! `/dev`: a clone of the spawner's template, with terminals and shared memory of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;

use super::root::tmpfs;
use crate::kernel::mount::{
    NODEV, NOEXEC, NOSUID, RDONLY, attach, clone_tree, new_filesystem, open_target, set_attributes,
};
use crate::limits::MAX_PTYS;
use crate::spawner::scaffold;
use crate::spawner::wire::MachinePlan;

pub(super) fn mount(root: &OwnedFd, plan: &MachinePlan) -> io::Result<()> {
    // Without root, the devices are mounts of their own.
    let dev = clone_tree(CWD, scaffold::DEV, true)?;
    // Devices still open for writing: that is not a write to the file system.
    set_attributes(dev.as_fd(), RDONLY | NOSUID | NOEXEC)?;
    attach(&dev, open_target(root, "dev")?)?;

    let max = MAX_PTYS.to_string();
    let group = plan.terminals.map(|group| group.to_string());
    let mut options = vec![("mode", "620"), ("ptmxmode", "666"), ("max", max.as_str())];
    options.extend(group.as_deref().map(|group| ("gid", group)));
    let terminals = new_filesystem("devpts", &options, NOSUID | NOEXEC)?;
    attach(terminals, open_target(&dev, "pts")?)?;

    let shared = tmpfs(plan.shm_bytes, "1777", plan.uid_base, NOSUID | NODEV | NOEXEC)?;
    attach(shared, open_target(&dev, "shm")?)
}
