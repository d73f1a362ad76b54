//! Making links. What a symbolic link says is text that is never followed here.

use std::ffi::OsStr;

use rustix::fs::{AtFlags, linkat};
use sandbank_protocol::{FileKind, FileStat};

use crate::draft::Draft;
use crate::regular::require_regular;
use crate::stat::Links;
use crate::{Overwrite, RelPath, Root, RootedError};

impl Root {
    /// A symbolic link in the place of nothing, a file or a link, making missing parents.
    pub fn symlink(&self, path: &RelPath, target: &OsStr) -> Result<FileStat, RootedError> {
        let (directory, _) = path.split().ok_or(RootedError::IsRoot)?;
        let parent = self.make_directories(&directory)?;
        Draft::link(parent, path, target)?.place(Overwrite::Yes)
    }

    /// Another name for a regular file, in the place of nothing, a file or a link, making missing
    /// parents.
    pub fn hardlink(&self, path: &RelPath, existing: &RelPath) -> Result<FileStat, RootedError> {
        let (directory, name) = existing.split().ok_or(RootedError::IsRoot)?;
        let there = self.resolve_directory(&directory)?;
        require_regular(self.stat(existing, Links::Keep)?, existing)?;
        let (directory, _) = path.split().ok_or(RootedError::IsRoot)?;
        let parent = self.make_directories(&directory)?;
        let link = Draft::of(parent, path, |parent, temporary| {
            linkat(&there, name, parent, temporary, AtFlags::empty())
        })?;
        // Which it is, is only certain now.
        match link.kind()? {
            FileKind::File => {}
            found => {
                let (path, wanted) = (existing.clone(), FileKind::File);
                return Err(RootedError::WrongKind { path, found, wanted });
            }
        }
        if path == existing {
            return self.stat(path, Links::Keep);
        }
        link.place(Overwrite::Yes)
    }
}
