//! Moving a name within the root.

use rustix::fs::renameat;
use rustix::io::Errno;
use sandbank_protocol::FileStat;

use crate::error::At;
use crate::renaming::rename_new;
use crate::stat::Links;
use crate::{RelPath, Root, RootedError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// An existing target is an error.
    No,
    /// An existing file, link or empty directory is replaced, as `rename(2)` does.
    Yes,
}

impl Root {
    /// Moves the entry itself: a symbolic link is moved, not what it points to.
    pub fn rename(
        &self,
        from: &RelPath,
        to: &RelPath,
        overwrite: Overwrite,
    ) -> Result<FileStat, RootedError> {
        let (from_directory, from_name) = from.split().ok_or(RootedError::IsRoot)?;
        let (to_directory, to_name) = to.split().ok_or(RootedError::IsRoot)?;
        let from_parent = self.resolve_directory(&from_directory)?;
        // The old name first, so that a missing source is not reported as a missing target.
        self.stat(from, Links::Keep)?;
        let to_parent = self.resolve_directory(&to_directory)?;
        let renamed = match overwrite {
            Overwrite::No => rename_new((&from_parent, from_name), (&to_parent, to_name)),
            Overwrite::Yes => renameat(&from_parent, from_name, &to_parent, to_name),
        };
        match renamed {
            Ok(()) => self.stat(to, Links::Keep),
            Err(Errno::INVAL) => Err(RootedError::IntoItself(from.clone())),
            Err(Errno::NOENT) => Err(RootedError::NotFound(from.clone())),
            // Another file system mounted below the root, not an escape.
            Err(Errno::XDEV) => Err(RootedError::Kernel { path: to.clone(), source: Errno::XDEV }),
            Err(errno) => Err(errno).at(to),
        }
    }
}
