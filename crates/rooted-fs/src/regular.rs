//! Regular files opened for reading or for writing in place. Anything else is refused.

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fstat};
use rustix::io::{Errno, pread, pwrite};
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::stat::{Links, describe};
use crate::{RelPath, Root, RootedError};

/// An open regular file.
#[derive(Debug)]
pub struct RegularFile {
    pub(crate) fd: OwnedFd,
    pub(crate) path: RelPath,
    pub(crate) stat: FileStat,
}

impl Root {
    pub fn open_read(&self, path: &RelPath) -> Result<RegularFile, RootedError> {
        self.open_regular(path, OFlags::RDONLY)
    }

    /// For writing in place; the file must exist.
    pub fn open_write(&self, path: &RelPath) -> Result<RegularFile, RootedError> {
        self.open_regular(path, OFlags::WRONLY)
    }

    fn open_regular(&self, path: &RelPath, access: OFlags) -> Result<RegularFile, RootedError> {
        // Merely opening a pipe wakes the process at its other end, so look first. The second
        // look is the one that counts; `NONBLOCK` keeps a pipe swapped in between from hanging.
        require_regular(self.stat(path, Links::Follow)?, path)?;
        let fd = self.resolve(path, access | OFlags::NONBLOCK | OFlags::NOCTTY, Links::Follow)?;
        let stat = require_regular(describe(&fstat(&fd).at(path)?), path)?;
        Ok(RegularFile { fd, path: path.clone(), stat })
    }
}

pub(crate) fn require_regular(stat: FileStat, path: &RelPath) -> Result<FileStat, RootedError> {
    match stat.kind {
        FileKind::File => Ok(stat),
        found => Err(RootedError::WrongKind { path: path.clone(), found, wanted: FileKind::File }),
    }
}

impl RegularFile {
    /// As it was when the file was opened.
    pub fn stat(&self) -> &FileStat {
        &self.stat
    }

    /// As it is now.
    pub fn stat_now(&self) -> Result<FileStat, RootedError> {
        fstat(&self.fd).at(&self.path).map(|stat| describe(&stat))
    }

    /// Up to `max` bytes at `offset`; empty at the end of the file.
    pub fn read_at(&self, offset: u64, max: usize) -> Result<Vec<u8>, RootedError> {
        let mut chunk = Vec::with_capacity(max);
        while chunk.len() < max {
            let at = offset + chunk.len() as u64;
            match pread(&self.fd, rustix::buffer::spare_capacity(&mut chunk), at) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).at(&self.path),
            }
        }
        Ok(chunk)
    }

    pub fn write_all_at(&self, mut offset: u64, mut bytes: &[u8]) -> Result<(), RootedError> {
        while !bytes.is_empty() {
            match pwrite(&self.fd, bytes, offset) {
                Ok(written) => {
                    offset += written as u64;
                    bytes = &bytes[written..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).at(&self.path),
            }
        }
        Ok(())
    }
}
