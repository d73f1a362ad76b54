//! The btrfs calls of `linux/btrfs.h` that storage needs, and nothing else.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

const MAGIC: u64 = 0x94;
const WRITE: u64 = 1;
const READ: u64 = 2;

const fn request(direction: u64, number: u64, size: usize) -> u64 {
    (direction << 30) | ((size as u64) << 16) | (MAGIC << 8) | number
}

const NAME_BYTES: usize = 4040;
const FLAG_QGROUP_INHERIT: u64 = 1 << 2;
const INHERIT_SET_LIMITS: u64 = 1;
const LIMIT_MAX_REFERENCED: u64 = 1;
/// Inode of every subvolume's root directory.
pub(super) const ROOT_INODE: u64 = 256;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArgs {
    fd: i64,
    transid: u64,
    flags: u64,
    inherit_size: u64,
    inherit: u64,
    unused: [u64; 2],
    name: [u8; NAME_BYTES],
}

/// `struct btrfs_qgroup_inherit` without parents, and `struct btrfs_qgroup_limit` in it.
#[repr(C)]
struct Inherit {
    flags: u64,
    groups: u64,
    reference_copies: u64,
    exclusive_copies: u64,
    limit_flags: u64,
    max_referenced: u64,
    max_exclusive: u64,
    reserved_referenced: u64,
    reserved_exclusive: u64,
}

#[repr(C)]
struct QuotaControl {
    command: u64,
    status: u64,
}

#[repr(C)]
struct QgroupCreate {
    create: u64,
    id: u64,
}

/// `struct btrfs_ioctl_qgroup_limit_args`. The id 0 means the subvolume of the descriptor.
#[repr(C)]
struct QgroupLimit {
    id: u64,
    flags: u64,
    max_referenced: u64,
    max_exclusive: u64,
    reserved_referenced: u64,
    reserved_exclusive: u64,
}

/// As a limit: takes it away.
const NO_LIMIT: u64 = u64::MAX;

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct InodeLookup {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

/// `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct OldVolumeArgs {
    fd: i64,
    name: [u8; 4088],
}

/// `struct btrfs_ioctl_fs_info_args`, of which the id is read.
#[repr(C)]
struct FsInfo {
    max_id: u64,
    devices: u64,
    fsid: [u8; 16],
    rest: [u8; 992],
}

const _: () = assert!(size_of::<VolumeArgs>() == 4096 && size_of::<OldVolumeArgs>() == 4096);
const _: () = assert!(size_of::<InodeLookup>() == 4096 && size_of::<FsInfo>() == 1024);

fn call<T>(fd: impl AsFd, direction: u64, number: u64, argument: &mut T) -> io::Result<()> {
    let code = request(direction, number, size_of::<T>());
    // SAFETY: `argument` is a live, exclusively borrowed value of the type whose size is part of
    // the request code, so the kernel reads and writes only inside it.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), code as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn volume_args(name: &str, fd: i64) -> io::Result<Box<VolumeArgs>> {
    let mut args = Box::new(VolumeArgs {
        fd,
        transid: 0,
        flags: 0,
        inherit_size: 0,
        inherit: 0,
        unused: [0; 2],
        name: [0; NAME_BYTES],
    });
    if name.len() >= NAME_BYTES || name.contains(['/', '\0']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    args.name[..name.len()].copy_from_slice(name.as_bytes());
    Ok(args)
}

fn inherit_limit(bytes: u64) -> Inherit {
    Inherit {
        flags: INHERIT_SET_LIMITS,
        groups: 0,
        reference_copies: 0,
        exclusive_copies: 0,
        limit_flags: LIMIT_MAX_REFERENCED,
        max_referenced: bytes,
        max_exclusive: 0,
        reserved_referenced: 0,
        reserved_exclusive: 0,
    }
}

/// Makes the volume with its limit in the same transaction, so none ever exists without it.
fn make(
    fd: impl AsFd,
    number: u64,
    mut args: Box<VolumeArgs>,
    quota: Option<u64>,
) -> io::Result<()> {
    let inherit = quota.map(inherit_limit);
    if let Some(inherit) = &inherit {
        args.flags |= FLAG_QGROUP_INHERIT;
        args.inherit_size = size_of::<Inherit>() as u64;
        // The kernel only reads through this pointer, during the call; `inherit` outlives it.
        args.inherit = std::ptr::from_ref(inherit) as u64;
    }
    call(fd, WRITE, number, &mut *args)
}

/// Makes an empty subvolume `name` in the directory `dir`.
pub(super) fn create(dir: impl AsFd, name: &str, quota: Option<u64>) -> io::Result<()> {
    make(dir, 24, volume_args(name, 0)?, quota)
}

/// Makes a writable snapshot `name` in `dir` of the subvolume whose root is `source`.
#[allow(dead_code, reason = "see `Storage::snapshot`")]
pub(super) fn snapshot(
    dir: impl AsFd,
    name: &str,
    source: impl AsFd,
    quota: Option<u64>,
) -> io::Result<()> {
    make(dir, 23, volume_args(name, i64::from(source.as_fd().as_raw_fd()))?, quota)
}

/// Changes how much the subvolume that holds `fd` may refer to.
pub(super) fn limit(fd: impl AsFd, bytes: Option<u64>) -> io::Result<()> {
    let mut limit = QgroupLimit {
        id: 0,
        flags: LIMIT_MAX_REFERENCED,
        max_referenced: bytes.unwrap_or(NO_LIMIT),
        max_exclusive: 0,
        reserved_referenced: 0,
        reserved_exclusive: 0,
    };
    call(fd, READ, 43, &mut limit)
}

/// Unlinks a subvolume; the kernel's cleaner frees its blocks later.
pub(super) fn destroy(dir: impl AsFd, name: &str) -> io::Result<()> {
    call(dir, WRITE, 63, &mut *volume_args(name, 0)?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaMode {
    /// Extents belong to the subvolume that wrote them: no back-reference walks. Linux 6.7.
    Simple,
    Full,
}

pub(super) fn enable_quota(fs: impl AsFd, mode: QuotaMode) -> io::Result<()> {
    let command = match mode {
        QuotaMode::Full => 1,
        QuotaMode::Simple => 4,
    };
    call(fs, WRITE | READ, 40, &mut QuotaControl { command, status: 0 })
}

pub(super) fn remove_qgroup(fs: impl AsFd, id: u64) -> io::Result<()> {
    call(fs, WRITE, 42, &mut QgroupCreate { create: 0, id })
}

/// The id of the subvolume that holds `fd`.
pub(super) fn subvolume_id(fd: impl AsFd) -> io::Result<u64> {
    let mut lookup = Box::new(InodeLookup { tree: 0, object: ROOT_INODE, name: [0; 4080] });
    call(fd, WRITE | READ, 18, &mut *lookup)?;
    Ok(lookup.tree)
}

/// Grows the file system to the size of its one device.
pub(super) fn grow(fs: impl AsFd) -> io::Result<()> {
    let mut args = Box::new(OldVolumeArgs { fd: 0, name: [0; 4088] });
    args.name[..3].copy_from_slice(b"max");
    call(fs, WRITE, 3, &mut *args)
}

/// The file system's id as `/sys/fs/btrfs` spells it.
pub(super) fn filesystem_id(fs: impl AsFd) -> io::Result<String> {
    let mut info = Box::new(FsInfo { max_id: 0, devices: 0, fsid: [0; 16], rest: [0; 992] });
    call(fs, READ, 31, &mut *info)?;
    let mut text = String::with_capacity(36);
    for (index, byte) in info.fsid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Ok(text)
}
