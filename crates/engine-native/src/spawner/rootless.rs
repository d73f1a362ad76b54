//! Without root: the spawner becomes root of a user namespace in which only its own user exists.
//!
//! From there everything works as it does for the host's root, except that mounts cannot be handed
//! over by the daemon and ids cannot be mapped: machines bind the host's directories by path, and
//! runner and commands are the daemon's own user.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::CWD;
use rustix::thread::UnshareFlags;

use super::scaffold;
use super::wire::HostPaths;
use crate::kernel::mount::{NODEV, NOSUID, RDONLY, clone_tree, set_attributes};

/// Must be the first thing the spawner does.
pub(super) fn become_root() -> io::Result<()> {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    // SAFETY: the spawner has one thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)? };
    // Without rights in the outer namespace, groups can be mapped only by giving up changing them.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}

/// The mounts that the daemon would have sent, were it root.
pub(super) struct HostMounts {
    pub(super) root: OwnedFd,
    pub(super) binds: Vec<OwnedFd>,
    pub(super) workspace: OwnedFd,
}

impl HostMounts {
    pub(super) fn open(paths: &HostPaths) -> io::Result<Self> {
        let fixed = RDONLY | NOSUID | NODEV;
        let binds = paths.binds.iter().map(|path| mount(path, fixed));
        Ok(Self {
            root: mount(&paths.root, fixed)?,
            binds: binds.collect::<io::Result<_>>()?,
            workspace: mount(&paths.workspace, NOSUID | NODEV)?,
        })
    }
}

/// With what is mounted below it: the kernel does not let a user uncover what root has covered.
fn mount(path: &str, attributes: u64) -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    let tree = clone_tree(CWD, format!("{}{path}", scaffold::HOST), true)?;
    set_attributes(tree.as_fd(), attributes)?;
    Ok(tree)
}

/// Brings up the loopback interface of the network namespace that this process is in.
pub(super) fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::os::fd::AsRawFd;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `ifreq` is plain data, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request names an interface and carries the flags that this call reads.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
