//! Locks that end with their holder, however it ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

/// None when another process has it. Whoever has it may remove the file.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<Lock>> {
    loop {
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // One that its last holder removed meanwhile would be found by nobody else.
            Ok(()) if !is_at(&file, path)? => {}
            Ok(()) => return Ok(Some(Lock(file))),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Whether some process has it; makes nothing, and in doubt says yes.
pub(crate) fn is_locked(path: &Path) -> bool {
    let mut options = File::options();
    match options.write(true).custom_flags(libc::O_NOFOLLOW).open(path) {
        Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
