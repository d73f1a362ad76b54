//! The bytes of one file into another, by the kernel where it can: shared blocks stay shared and
//! holes stay holes.

use std::os::fd::OwnedFd;

use rustix::fs::{SeekFrom, copy_file_range, ftruncate, seek};
use rustix::io::{Errno, pread, pwrite};

use crate::limits::COPY_BYTES_PER_LOOK;

/// Of a copy without the kernel's help.
const BUFFER_BYTES: usize = 64 << 10;

/// Copies `size` bytes into an empty file; fewer where the source became shorter. `CANCELED` when
/// the copy is not wanted any more.
pub(crate) fn copy_contents(
    from: &OwnedFd,
    to: &OwnedFd,
    size: u64,
    wanted: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let mut at = 0;
    while at < size {
        let (start, end) = data(from, at, size)?;
        if start >= size {
            break;
        }
        if !copy_range(from, to, start, end, wanted)? {
            return Ok(());
        }
        at = end;
    }
    // A hole at the end.
    ftruncate(to, size)
}

/// The next bytes that are no hole; behind the end when there are none.
fn data(from: &OwnedFd, at: u64, size: u64) -> Result<(u64, u64), Errno> {
    match seek(from, SeekFrom::Data(at)) {
        Ok(start) => {
            let end = seek(from, SeekFrom::Hole(start)).unwrap_or(size);
            // A file system that makes no sense is copied as a whole.
            Ok((start.max(at), if end > start { end.min(size) } else { size }))
        }
        Err(Errno::NXIO) => Ok((size, size)),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok((at, size)),
        Err(errno) => Err(errno),
    }
}

/// False when the source ended before.
fn copy_range(
    from: &OwnedFd,
    to: &OwnedFd,
    mut at: u64,
    end: u64,
    wanted: &dyn Fn() -> bool,
) -> Result<bool, Errno> {
    while at < end {
        if !wanted() {
            return Err(Errno::CANCELED);
        }
        let piece = usize::try_from((end - at).min(COPY_BYTES_PER_LOOK)).unwrap_or(BUFFER_BYTES);
        let (mut read, mut write) = (at, at);
        let copied = copy_file_range(from, Some(&mut read), to, Some(&mut write), piece);
        let copied = match copied {
            // Some file systems answer 0 where they cannot; then reading tells.
            Ok(0) => copy_by_hand(from, to, at, piece)?,
            Ok(copied) => copied,
            Err(Errno::INTR) => continue,
            Err(
                Errno::XDEV
                | Errno::INVAL
                | Errno::NOSYS
                | Errno::OPNOTSUPP
                | Errno::PERM
                | Errno::IO,
            ) => copy_by_hand(from, to, at, piece)?,
            Err(errno) => return Err(errno),
        };
        if copied == 0 {
            return Ok(false);
        }
        at += copied as u64;
    }
    Ok(true)
}

fn copy_by_hand(from: &OwnedFd, to: &OwnedFd, at: u64, max: usize) -> Result<usize, Errno> {
    let mut buffer = vec![0; max.min(BUFFER_BYTES)];
    let read = loop {
        match pread(from, &mut buffer, at) {
            Err(Errno::INTR) => {}
            answer => break answer?,
        }
    };
    let mut written = 0;
    while written < read {
        match pwrite(to, &buffer[written..read], at + written as u64) {
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(read)
}
