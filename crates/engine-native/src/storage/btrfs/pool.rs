//! The pool: a btrfs file system of our own in one sparse file of the data directory.
//!
//! It is mounted at `<data>/pool` in the daemon's mount namespace and stays there when the
//! daemon dies; the next one finds it in the mount table. After a reboot it is mounted anew.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{FlockOperation, IFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use sandbank_engine::EngineError;

use super::{ioctl, loop_device};
use crate::limits::KERNEL_POLL;
use crate::storage::limits::{MIN_POOL_BYTES, UNMOUNT_PATIENCE};
use crate::storage::make_private_dir;

const IMAGE: &str = "pool.img";
const UNFINISHED: &str = "pool.img.new";
const MOUNT_POINT: &str = "pool";
const OPTIONS: &std::ffi::CStr = c"discard=async";

pub(super) struct Pool {
    pub(super) mount_point: PathBuf,
}

pub(super) fn exists(data_dir: &Path) -> bool {
    data_dir.join(IMAGE).exists()
}

struct Mounted {
    device: PathBuf,
    read_only: bool,
}

/// Undoes the mount table's octal escapes.
fn unescape(field: &str) -> Vec<u8> {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) if bytes[at] == b'\\' => {
                out.push(byte);
                at += 4;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// The topmost btrfs mount at exactly `target`.
fn find_in(table: &str, target: &Path) -> Option<Mounted> {
    let mut found = None;
    for line in table.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mount_point = left.split(' ').nth(4).map(unescape);
        if mount_point.as_deref() != Some(target.as_os_str().as_encoded_bytes()) {
            continue;
        }
        let mut right = right.split(' ');
        let (kind, device, options) = (right.next(), right.next(), right.next().unwrap_or(""));
        if kind == Some("btrfs") {
            found = Some(Mounted {
                device: PathBuf::from(device.unwrap_or("")),
                read_only: options.split(',').any(|option| option == "ro"),
            });
        }
    }
    found
}

impl Pool {
    pub(super) fn open(data_dir: &Path, bytes: u64) -> Result<Self, EngineError> {
        let image = data_dir.join(IMAGE);
        let mount_point = data_dir.join(MOUNT_POINT);
        make_private_dir(&mount_point)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(data_dir.join("pool.lock"))
            .map_err(EngineError::io("open the pool's lock"))?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|errno| EngineError::io("lock the pool")(errno.into()))?;
        if !image.exists() {
            make_image(data_dir, &image, bytes)?;
        }
        grow_file(&image, bytes)?;
        let device = match mounted_at(&mount_point)? {
            Some(mounted) => check_mounted(mounted, &image, &mount_point)?,
            None => mount(&image, &mount_point)?,
        };
        let pool = Self { mount_point };
        pool.grow(&device, bytes);
        Ok(pool)
    }

    /// A pool that cannot grow is still a pool, so this only warns.
    fn grow(&self, device: &Path, bytes: u64) {
        let grown = File::open(&self.mount_point).and_then(|root| {
            let stat = rustix::fs::fstatvfs(&root)?;
            if stat.f_blocks * stat.f_frsize < bytes {
                loop_device::refresh_capacity(device)?;
                ioctl::grow(&root)?;
            }
            Ok(())
        });
        if let Err(error) = grown {
            tracing::warn!(%error, "failed to grow the pool");
        }
    }

    /// Unmounts; a pool that something still uses after a while stays.
    pub(super) fn unmount(&self) {
        let deadline = Instant::now() + UNMOUNT_PATIENCE;
        loop {
            match rustix::mount::unmount(&self.mount_point, UnmountFlags::empty()) {
                Ok(()) => return,
                // The last look at a workspace, or the last process of a sandbox, is about to end.
                Err(Errno::BUSY) if Instant::now() < deadline => std::thread::sleep(KERNEL_POLL),
                Err(error) => {
                    tracing::warn!(%error, at = %self.mount_point.display(), "the pool stays mounted");
                    return;
                }
            }
        }
    }
}

fn mounted_at(mount_point: &Path) -> Result<Option<Mounted>, EngineError> {
    let table =
        std::fs::read("/proc/self/mountinfo").map_err(EngineError::io("read the mount table"))?;
    Ok(find_in(&String::from_utf8_lossy(&table), mount_point))
}

/// A mount that an earlier daemon left must be of this very file and writable.
fn check_mounted(
    mounted: Mounted,
    image: &Path,
    mount_point: &Path,
) -> Result<PathBuf, EngineError> {
    let at = mount_point.display();
    let look = "find the file behind the pool";
    let ours = File::open(&mounted.device)
        .and_then(|device| loop_device::is_backed_by(&device, &File::open(image)?))
        .map_err(EngineError::io(look))?;
    if !ours {
        let backing = loop_device::backing_file(&mounted.device).map_err(EngineError::io(look))?;
        return Err(EngineError::Unavailable(format!(
            "{at} is a mount of {backing}, not of {}; unmount it and start again",
            image.display()
        )));
    }
    if mounted.read_only {
        return Err(EngineError::Unavailable(format!(
            "the pool at {at} has turned read-only, as it does when the disk below it is full; \
             free some space, stop its sandboxes, run `umount {at}` and start again"
        )));
    }
    Ok(mounted.device)
}

fn mount(image: &Path, mount_point: &Path) -> Result<PathBuf, EngineError> {
    let device = loop_device::attach(image).map_err(EngineError::io("attach the pool's file"))?;
    let flags = MountFlags::NOATIME | MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount(&device.path, mount_point, c"btrfs", flags, OPTIONS)
        .map_err(|errno| EngineError::io("mount the pool")(errno.into()))?;
    Ok(device.path)
}

/// Makes the file under another name, so a crash never leaves half a file system as the pool.
fn make_image(data_dir: &Path, image: &Path, bytes: u64) -> Result<(), EngineError> {
    if bytes < MIN_POOL_BYTES {
        return Err(EngineError::Unavailable(format!(
            "a pool of {bytes} bytes is too small; give it at least {MIN_POOL_BYTES}"
        )));
    }
    let unfinished = data_dir.join(UNFINISHED);
    let make = || {
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(EngineError::io("create the pool's file"))?;
        // On a copying file system the pool would fragment; others do not know the flag.
        if let Ok(flags) = rustix::fs::ioctl_getflags(&file) {
            let _ = rustix::fs::ioctl_setflags(&file, flags | IFlags::NOCOW);
        }
        file.set_len(bytes).map_err(EngineError::io("size the pool's file"))?;
        make_file_system(&unfinished)?;
        file.sync_all().map_err(EngineError::io("write the pool's file"))?;
        std::fs::rename(&unfinished, image).map_err(EngineError::io("finish the pool's file"))
    };
    make().inspect_err(|_| {
        let _ = std::fs::remove_file(&unfinished);
    })
}

fn make_file_system(file: &Path) -> Result<(), EngineError> {
    // One copy of the metadata: the file is one device, and what it holds is short-lived.
    let output = Command::new("mkfs.btrfs")
        .args(["--quiet", "--metadata", "single", "--data", "single"])
        .arg(file)
        .env("PATH", super::TOOL_PATH)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(EngineError::Unavailable(format!(
            "mkfs.btrfs failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(EngineError::Unavailable(
            "mkfs.btrfs is not installed; install btrfs-progs".to_owned(),
        )),
        Err(error) => Err(EngineError::io("run mkfs.btrfs")(error)),
    }
}

/// A larger configured size grows the sparse file; a smaller one changes nothing.
fn grow_file(image: &Path, bytes: u64) -> Result<(), EngineError> {
    let step = EngineError::io("size the pool's file");
    File::options()
        .write(true)
        .open(image)
        .and_then(|file| if file.metadata()?.len() < bytes { file.set_len(bytes) } else { Ok(()) })
        .map_err(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_table_is_read_with_its_escapes() {
        let table = "40 1 0:40 / /data/a\\040b/pool rw - btrfs /dev/loop7 rw,space_cache=v2\n\
                     41 1 0:41 / /data/other rw shared:1 - ext4 /dev/vda rw\n";
        let found = find_in(table, Path::new("/data/a b/pool")).unwrap();
        assert_eq!(found.device, Path::new("/dev/loop7"));
        assert!(!found.read_only);
        assert!(find_in(table, Path::new("/data/other")).is_none());
        assert!(find_in(table, Path::new("/data")).is_none());
    }
}
