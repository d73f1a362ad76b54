//! The machine's tree: image, binds, scratch space, its own files in `/etc`, the workspace.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use rustix::mount::MountFlags;

use crate::kernel::mount::{
    NODEV, NOEXEC, NOSUID, RDONLY, attach, clone_tree, new_filesystem, open_target, set_attributes,
};
use crate::limits::{RUN_BYTES, TMPFS_BYTES_PER_INODE};
use crate::spawner::scaffold;
use crate::spawner::wire::MachinePlan;

/// Attaches the image and returns its root. One layer needs no overlay.
pub(super) fn mount(lower: &[OwnedFd]) -> io::Result<OwnedFd> {
    match lower {
        [only] => attach(only, scaffold::open_dir(scaffold::ROOT)?)?,
        several => overlay(several)?,
    }
    scaffold::open_dir(scaffold::ROOT)
}

/// A read-only overlay: no layer is writable, so nothing can silently become so.
fn overlay(lower: &[OwnedFd]) -> io::Result<()> {
    let mut names = Vec::with_capacity(lower.len());
    for (number, layer) in lower.iter().enumerate() {
        let name = scaffold::lower(number);
        attach(layer, scaffold::open_dir(&name)?)?;
        names.push(name);
    }
    // The kernel must not follow redirects that an image's author could have written.
    let options = format!("lowerdir={},redirect_dir=nofollow,metacopy=off", names.join(":"));
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    let options = std::ffi::CString::new(options)?;
    rustix::mount::mount("overlay", scaffold::ROOT, "overlay", flags, options.as_c_str())?;
    Ok(())
}

/// The daemon made the binds read-only.
pub(super) fn bind(root: &OwnedFd, targets: &[String], binds: &[OwnedFd]) -> io::Result<()> {
    for (target, bind) in targets.iter().zip(binds) {
        attach(bind, open_target(root, target)?)?;
    }
    Ok(())
}

/// A tmpfs of a bounded size whose top directory belongs to `owner`.
pub(super) fn tmpfs(bytes: u64, mode: &str, owner: u32, attributes: u64) -> io::Result<OwnedFd> {
    // The kernel takes 0 for no bound at all.
    let bytes = bytes.max(4096);
    let inodes = (bytes / TMPFS_BYTES_PER_INODE).max(64).to_string();
    let (bytes, owner) = (bytes.to_string(), owner.to_string());
    let options = [
        ("size", bytes.as_str()),
        ("nr_inodes", inodes.as_str()),
        ("mode", mode),
        ("uid", owner.as_str()),
        ("gid", owner.as_str()),
    ];
    new_filesystem("tmpfs", &options, attributes)
}

/// `/tmp`, which is also `/var/tmp`, and an empty `/run` in place of the image's.
pub(super) fn mount_scratch(root: &OwnedFd, plan: &MachinePlan) -> io::Result<()> {
    let tmp = tmpfs(plan.tmp_bytes, "1777", plan.uid_base, NOSUID | NODEV)?;
    attach(&tmp, open_target(root, "tmp")?)?;
    if let Ok(var_tmp) = open_target(root, "var/tmp") {
        attach(clone_tree(&tmp, "", false)?, var_tmp)?;
    }
    let run = tmpfs(RUN_BYTES, "755", plan.uid_base, NOSUID | NODEV | RDONLY)?;
    attach(run, open_target(root, "run")?)
}

/// The machine's own name and resolver, as read-only files over the image's.
pub(super) fn mount_etc(root: &OwnedFd, plan: &MachinePlan) -> io::Result<()> {
    let own = tmpfs(64 * 1024, "755", plan.uid_base, NOSUID | NODEV | NOEXEC)?;
    attach(&own, scaffold::open_dir(scaffold::ETC)?)?;
    let host_name = format!("{}\n", plan.host_name);
    let files =
        [("hostname", &host_name), ("hosts", &plan.hosts), ("resolv.conf", &plan.resolv_conf)];
    for (name, text) in files {
        write_file(&own, name, text, plan.uid_base)?;
        let copy = clone_tree(CWD, format!("{}/{name}", scaffold::ETC), false)?;
        set_attributes(copy.as_fd(), RDONLY)?;
        match open_target(root, &format!("etc/{name}")) {
            Ok(target) => attach(copy, target)?,
            // An image may lack the file; it then has no use for it either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_file(dir: &OwnedFd, name: &str, text: &str, owner: u32) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::from_bits_retain(0o644))?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?)
}

pub(super) fn mount_workspace(root: &OwnedFd, workspace: Option<&OwnedFd>) -> io::Result<()> {
    let workspace = workspace.ok_or(io::ErrorKind::NotFound)?;
    attach(workspace, open_target(root, sandbank_protocol::WORKSPACE)?)
}
