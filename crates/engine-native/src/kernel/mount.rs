//! Detached mounts: clone, change, attach. Targets are opened below the new root without following
//! any symlink, so nothing in an image can redirect a mount.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

pub(crate) use libc::{
    MOUNT_ATTR_NODEV as NODEV, MOUNT_ATTR_NOEXEC as NOEXEC, MOUNT_ATTR_NOSUID as NOSUID,
    MOUNT_ATTR_RDONLY as RDONLY,
};

/// A detached copy of the mount at `path`, with what is mounted below it when `recursive`.
pub(crate) fn clone_tree(
    dir: impl AsFd,
    path: impl rustix::path::Arg,
    recursive: bool,
) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(rustix::mount::open_tree(dir, path, flags)?)
}

/// Adds attributes to a detached mount and everything below it, and takes it out of the peer group
/// of the mount it was cloned from: otherwise what is mounted on the copy would also appear on the
/// host.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    mount_setattr(mount, libc::AT_RECURSIVE, change)
}

/// Shows the ids on this one mount as those of the user namespace. Not what is mounted below it.
pub(crate) fn map_ids(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.as_raw_fd() as u64,
    };
    mount_setattr(mount, 0, change)
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    flags: libc::c_int,
    mut change: libc::mount_attr,
) -> io::Result<()> {
    // SAFETY: the path is an empty C string and the structure outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw mut change,
            size_of_val(&change),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A mount point below `root`, or an error when any component is a symlink.
pub(crate) fn open_target(root: impl AsFd, path: &str) -> io::Result<OwnedFd> {
    let relative = path.trim_start_matches('/');
    let relative = if relative.is_empty() { "." } else { relative };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve)?)
}

/// Puts a detached mount onto an opened target.
pub(crate) fn attach(mount: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", target, "", flags)?)
}

/// Puts a detached mount onto a path in a tree that the kernel itself made, such as `/proc`.
pub(crate) fn attach_at(mount: impl AsFd, tree: impl AsFd, path: &str) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", tree, path, flags)?)
}

/// A new file system, mounted nowhere yet.
pub(crate) fn new_filesystem(
    kind: &str,
    options: &[(&str, &str)],
    attributes: u64,
) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(&context, *key, *value)?;
    }
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::from_bits_retain(attributes as u32);
    Ok(rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
