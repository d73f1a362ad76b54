//! What a client expects to find where it wants to change something.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use sandbank_protocol::{FileStat, FileTag};

use crate::error::At;
use crate::stat::describe;
use crate::{RelPath, Root, RootedError};

/// The entry itself counts, a link is not followed: it is the link that would be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    Anything,
    Nothing,
    Something,
    /// One of these versions.
    Version(Vec<FileTag>),
}

impl Root {
    /// Fails as [`RootedError::Changed`] unless what is there is what was expected.
    ///
    /// Between this and a change that follows at once only the sandbox itself can come.
    pub fn require(&self, path: &RelPath, expected: &Expected) -> Result<(), RootedError> {
        if *expected == Expected::Anything {
            return Ok(());
        }
        let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
        match self.resolve_directory(&directory) {
            Ok(parent) => expected.check(&parent, name, path),
            Err(RootedError::NotFound(_)) if *expected == Expected::Nothing => Ok(()),
            Err(RootedError::NotFound(_)) => Err(RootedError::Changed(path.clone())),
            Err(error) => Err(error),
        }
    }
}

impl Expected {
    pub(crate) fn check(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &RelPath,
    ) -> Result<(), RootedError> {
        if *self == Self::Anything {
            return Ok(());
        }
        let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(describe(&stat)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno).at(path),
        };
        if self.is_met_by(found.as_ref()) {
            Ok(())
        } else {
            Err(RootedError::Changed(path.clone()))
        }
    }

    /// Whether this is what was expected; none stands for nothing.
    pub fn is_met_by(&self, found: Option<&FileStat>) -> bool {
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) | (Self::Something, Some(_)) => true,
            (Self::Version(tags), Some(found)) => {
                found.tag.is_some_and(|found| tags.contains(&found))
            }
            _ => false,
        }
    }
}
