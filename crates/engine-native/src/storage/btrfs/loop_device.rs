//! Loop devices: a file as a block device, given back by the kernel with its last user.

use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::storage::limits::LOOP_ATTEMPTS;

const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LOOP_CONFIGURE: u64 = 0x4C0A;
const LOOP_GET_STATUS64: u64 = 0x4C05;
const LOOP_SET_CAPACITY: u64 = 0x4C07;
const FLAG_AUTOCLEAR: u32 = 4;
const FLAG_DIRECT_IO: u32 = 16;
const BLOCK_BYTES: u32 = 4096;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

/// An attached device. It is cleared once this is dropped and nothing has it mounted.
pub(super) struct LoopDevice {
    pub(super) path: PathBuf,
    /// Held so that the device is not cleared before the mount.
    _device: File,
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

fn configure(device: &File, backing: &File, flags: u32) -> io::Result<()> {
    // SAFETY: every field of `Config` is an integer or an array of them; all zeroes is valid.
    let mut config: Config = unsafe { zeroed() };
    config.fd = backing.as_raw_fd() as u32;
    config.block_size = BLOCK_BYTES;
    config.info.flags = flags;
    // SAFETY: the kernel only reads `config`, which is as large as `struct loop_config`.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The device that `file` has already. A file system that was unmounted here may live on in other
/// mount namespaces for a while, and must not be reached through two devices.
fn attached(file: &File) -> Option<LoopDevice> {
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    let names = devices.map(|entry| entry.file_name());
    let loops = names.filter(|name| name.as_encoded_bytes().starts_with(b"loop"));
    loops.map(|name| Path::new("/dev").join(name)).find_map(|path| {
        // Opened first: nobody clears it from here on.
        let device = open(&path).ok()?;
        is_backed_by(&device, file).ok()?.then_some(LoopDevice { path, _device: device })
    })
}

/// By the file itself: its name may be another's in another mount namespace.
pub(super) fn is_backed_by(device: &File, file: &File) -> io::Result<bool> {
    // SAFETY: every field of `Info` is an integer or an array of them; all zeroes is valid.
    let mut info: Info = unsafe { zeroed() };
    // SAFETY: the kernel writes no more than a `struct loop_info64`, which `info` is as large as.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &mut info) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ENXIO) { Ok(false) } else { Err(error) };
    }
    let file = file.metadata()?;
    Ok((info.device, info.inode) == (file.dev(), file.ino()))
}

/// Attaches `file` to a free device if it has none yet. The host does not cache its blocks a second
/// time where the file system underneath can do without.
pub(super) fn attach(file: &Path) -> io::Result<LoopDevice> {
    let backing = open(file)?;
    if let Some(device) = attached(&backing) {
        return Ok(device);
    }
    let control = open(Path::new("/dev/loop-control"))?;
    for _ in 0..LOOP_ATTEMPTS {
        // SAFETY: the request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = open(&path)?;
        let attached = match configure(&device, &backing, FLAG_AUTOCLEAR | FLAG_DIRECT_IO) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                configure(&device, &backing, FLAG_AUTOCLEAR)
            }
            other => other,
        };
        match attached {
            Ok(()) => return Ok(LoopDevice { path, _device: device }),
            // Someone else was quicker.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

/// Makes the device see that its file has grown.
pub(super) fn refresh_capacity(device: &Path) -> io::Result<()> {
    let device = open(device)?;
    // SAFETY: the request takes no argument.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_CAPACITY as _) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The file behind a device, as the kernel spells it; a removed one ends in ` (deleted)`.
pub(super) fn backing_file(device: &Path) -> io::Result<String> {
    let name = device.file_name().unwrap_or_default();
    let attribute = Path::new("/sys/block").join(name).join("loop/backing_file");
    Ok(std::fs::read_to_string(attribute)?.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_never_has_two_devices() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: loop devices need root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        for file in [&one, &other] {
            File::create(file).unwrap().set_len(1 << 20).unwrap();
        }
        let (first, second) = (attach(&one).unwrap(), attach(&one).unwrap());
        assert_eq!(first.path, second.path);
        assert_ne!(first.path, attach(&other).unwrap().path);
        drop(first);
        assert_eq!(attach(&one).unwrap().path, second.path, "it is still in use");
    }
}
