//! Making directories.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::stat::Links;
use crate::{RelPath, Root, RootedError};

const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

impl Root {
    /// Makes one directory whose parent exists; an existing one is an error.
    pub fn mkdir(&self, path: &RelPath) -> Result<FileStat, RootedError> {
        let Some((parent, name)) = path.split() else {
            return Err(RootedError::AlreadyExists(path.clone()));
        };
        let parent = self.resolve_directory(&parent)?;
        mkdirat(&parent, name, DIRECTORY_MODE).at(path)?;
        self.stat(path, Links::Keep)
    }

    /// Makes a directory and its missing parents; an existing directory is fine.
    pub fn mkdir_all(&self, path: &RelPath) -> Result<FileStat, RootedError> {
        self.make_directories(path)?;
        self.stat(path, Links::Follow)
    }

    /// Like [`Root::mkdir_all`], and opens it as a base for `*at` calls.
    pub(crate) fn make_directories(&self, path: &RelPath) -> Result<OwnedFd, RootedError> {
        let mut missing = Vec::new();
        for ancestor in path.ancestors() {
            match self.resolve_directory(&ancestor) {
                Ok(_) => break,
                Err(RootedError::NotFound(_)) => missing.push(ancestor),
                Err(error) => return Err(self.explain(error, &ancestor)),
            }
        }
        for directory in missing.into_iter().rev() {
            let (parent, name) = directory.split().ok_or(RootedError::IsRoot)?;
            let parent = self.resolve_directory(&parent)?;
            match mkdirat(&parent, name, DIRECTORY_MODE) {
                // Somebody else made it, or it is a link to nowhere: opening it will tell.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno).at(&directory),
            }
        }
        self.resolve_directory(path)
    }

    /// A file where a directory is needed, named as such.
    fn explain(&self, error: RootedError, path: &RelPath) -> RootedError {
        match (&error, self.stat(path, Links::Follow)) {
            (RootedError::NotADirectory(_), Ok(stat)) => RootedError::WrongKind {
                path: path.clone(),
                found: stat.kind,
                wanted: FileKind::Directory,
            },
            _ => error,
        }
    }
}
