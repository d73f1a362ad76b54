//! The spawner's own root: an empty tmpfs with mount points and templates.
//!
//! Nothing of the host is in it, so a new machine has nothing to leave behind, and cloning its
//! mount namespace copies four mounts instead of the host's hundreds. The host's `/proc` stays
//! reachable by descriptor only.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;
use sandbank_engine::kernel_files::{PROC_FIXED, PROC_HIDDEN, SYS_HIDDEN};

use crate::kernel::mount::{
    NODEV, NOEXEC, NOSUID, RDONLY, attach, attach_at, clone_tree, new_filesystem,
};
use crate::limits::MAX_LOWER;

/// Mount points and templates, by path from the spawner's root.
pub(super) const ROOT: &str = "/root";
pub(super) const ETC: &str = "/etc";
pub(super) const DEV: &str = "/dev";
pub(super) const EMPTY: &str = "/empty";
pub(super) const NULL: &str = "/dev/null";

/// Where the host's tree stays reachable, without root only.
pub(super) const HOST: &str = "/host";

/// Where the layer with this number is attached; relative, to keep overlay's options short.
pub(super) fn lower(number: usize) -> String {
    format!("l/{number}")
}

/// A file of `/proc` or `/sys` that this kernel has.
pub(super) struct KernelFile {
    pub(super) name: &'static str,
    pub(super) is_dir: bool,
}

pub(super) struct Scaffold {
    /// The host's `/proc`.
    pub(super) proc: OwnedFd,
    pub(super) proc_hidden: Vec<KernelFile>,
    pub(super) proc_fixed: Vec<KernelFile>,
    pub(super) sys_hidden: Vec<KernelFile>,
    pub(super) rootless: bool,
}

impl Scaffold {
    /// Leaves the host's mounts behind, or, without root, keeps them below one directory: there
    /// machines are bound from them by path.
    pub(super) fn raise(rootless: bool) -> io::Result<Self> {
        let proc = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let proc_hidden = present("/proc", PROC_HIDDEN)?;
        let proc_fixed = present("/proc", PROC_FIXED)?;
        let sys_hidden = present("/sys", SYS_HIDDEN)?;
        // SAFETY: the spawner has one thread, whose view of the file system alone changes.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
        // Not private: what the host unmounts must not live on in this copy.
        let follow = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", follow)?;

        let own = new_filesystem("tmpfs", &[("size", "1m"), ("mode", "700")], NOSUID | NOEXEC)?;
        // Any directory will do to attach it to; it must be opened in the new namespace.
        attach(&own, open_dir("/proc")?)?;
        rustix::process::fchdir(&own)?;
        if rootless {
            make_dir(HOST.trim_start_matches('/'))?;
            rustix::process::pivot_root(".", HOST.trim_start_matches('/'))?;
            rustix::process::chdir("/")?;
        } else {
            enter_current_directory()?;
        }
        for path in [ROOT, ETC, DEV, EMPTY, "/l"] {
            make_dir(path)?;
        }
        for number in 0..MAX_LOWER {
            make_dir(&lower(number))?;
        }
        let empty = new_filesystem("tmpfs", &[("size", "4k"), ("mode", "755")], FROZEN | RDONLY)?;
        attach(empty, open_dir(EMPTY)?)?;
        make_devices(rootless)?;
        Ok(Self { proc, proc_hidden, proc_fixed, sys_hidden, rootless })
    }
}

/// Which of these the kernel has: the same for every machine, so it is asked once.
fn present(dir: &str, names: &'static [&'static str]) -> io::Result<Vec<KernelFile>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match std::fs::symlink_metadata(format!("{dir}/{name}")) {
            Ok(file) => found.push(KernelFile { name, is_dir: file.is_dir() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

const FROZEN: u64 = NOSUID | NODEV | NOEXEC;

/// Makes the mount that is the current directory the root, and drops the old root.
pub(super) fn enter_current_directory() -> io::Result<()> {
    match rustix::process::pivot_root(".", ".") {
        // The old root now lies on top of the new one.
        Ok(()) => rustix::mount::unmount(".", UnmountFlags::DETACH)?,
        // An initramfs cannot be pivoted away, only covered.
        Err(rustix::io::Errno::INVAL) => {
            rustix::mount::mount_move(".", "/")?;
            rustix::process::chroot(".")?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::process::chdir("/")?)
}

/// The devices every machine sees; each gets a read-only clone of this one mount. Without root
/// they are the host's own, bound one by one.
fn make_devices(rootless: bool) -> io::Result<()> {
    const DEVICES: [(&str, u32, u32); 6] = [
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
    ];
    const LINKS: [(&str, &str); 5] = [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    let options = [("size", "64k"), ("mode", "755")];
    let dev = new_filesystem("tmpfs", &options, NOSUID | NOEXEC)?;
    attach(dev.as_fd(), open_dir(DEV)?)?;
    for (name, major, minor) in DEVICES {
        if rootless {
            bind_device(&dev, name)?;
        } else {
            make_device(&dev, name, rustix::fs::makedev(major, minor))?;
        }
    }
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, &dev, name)?;
    }
    for name in ["pts", "shm"] {
        rustix::fs::mkdirat(&dev, name, Mode::from_bits_retain(0o755))?;
    }
    Ok(())
}

fn make_device(dev: &OwnedFd, name: &str, device: rustix::fs::Dev) -> io::Result<()> {
    let open_to_all = Mode::from_bits_retain(0o666);
    rustix::fs::mknodat(dev, name, FileType::CharacterDevice, open_to_all, device)?;
    // The umask has taken some of it.
    Ok(rustix::fs::chmodat(dev, name, open_to_all, rustix::fs::AtFlags::empty())?)
}

fn bind_device(dev: &OwnedFd, name: &str) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::WRONLY;
    rustix::fs::openat(dev, name, flags, Mode::empty())?;
    attach_at(clone_tree(CWD, format!("{HOST}/dev/{name}"), false)?, dev, name)
}

fn make_dir(path: &str) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(CWD, path, Mode::from_bits_retain(0o700))?)
}

pub(super) fn open_dir(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}
