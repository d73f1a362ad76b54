//! The entries of one directory.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, OFlags, RawDir, readlinkat, statat};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::limits::DIRECTORY_BUFFER_BYTES;
use crate::stat::{Links, describe};
use crate::{RelPath, Root, RootedError};

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    pub(crate) fd: OwnedFd,
    pub(crate) path: RelPath,
}

/// Sorted bytewise. When there are more than were asked for, which ones are missing is up to the
/// file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub names: Vec<OsString>,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As the kernel has it: not necessarily text.
    pub name: OsString,
    /// Of the entry itself, links not followed.
    pub stat: FileStat,
    /// Where a symbolic link points; not checked.
    pub target: Option<OsString>,
}

impl Root {
    pub fn open_directory(&self, path: &RelPath) -> Result<Directory, RootedError> {
        let fd = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY, Links::Follow);
        let fd = match fd {
            // Tell a file at `path` from a file on the way to it.
            Err(RootedError::NotADirectory(_)) => {
                let found = self.stat(path, Links::Follow)?.kind;
                let (path, wanted) = (path.clone(), FileKind::Directory);
                return Err(RootedError::WrongKind { path, found, wanted });
            }
            fd => fd?,
        };
        Ok(Directory { fd, path: path.clone() })
    }

    /// All at once: up to `limit` entries of a directory, and whether there are more.
    pub fn list(&self, path: &RelPath, limit: usize) -> Result<(Vec<Entry>, bool), RootedError> {
        let directory = self.open_directory(path)?;
        let Names { names, truncated } = directory.names(limit)?;
        let entries: Result<Vec<_>, _> =
            names.into_iter().filter_map(|name| directory.entry(name).transpose()).collect();
        Ok((entries?, truncated))
    }
}

impl Directory {
    /// As it was opened.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Up to `limit` names; reading stops there.
    pub fn names(&self, limit: usize) -> Result<Names, RootedError> {
        let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BUFFER_BYTES];
        let mut reader = RawDir::new(&self.fd, &mut buffer);
        let mut names = Vec::new();
        let mut truncated = false;
        while let Some(entry) = reader.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                entry => entry.at(&self.path)?,
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if names.len() == limit {
                truncated = true;
                break;
            }
            names.push(OsStr::from_bytes(name).to_owned());
        }
        names.sort_unstable();
        Ok(Names { names, truncated })
    }

    /// Describes a name from [`Directory::names`]; none when it is gone by now.
    pub fn entry(&self, name: OsString) -> Result<Option<Entry>, RootedError> {
        let stat = match statat(&self.fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => describe(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno).at(&self.path),
        };
        let target = match stat.kind {
            FileKind::Symlink => readlinkat(&self.fd, &name, Vec::new()).ok(),
            _ => None,
        };
        let target = target.map(|target| OsString::from_vec(target.into_bytes()));
        Ok(Some(Entry { name, stat, target }))
    }
}
