//! Several files that appear together or not at all.
//!
//! All contents are written first. Then each file takes its place by an exchange that keeps the
//! old version under the temporary name, so that a failure at the last one still puts every old
//! version back. Descriptors are closed in between: a batch may have more files than a process
//! may have open.

use std::ffi::OsString;

use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::error::At;
use crate::pending::replaceable;
use crate::{PendingFile, RelPath, Root, RootedError};

/// Staged files; dropping it before [`Batch::commit`] removes what was written.
#[derive(Debug)]
pub struct Batch<'r> {
    root: &'r Root,
    staged: Vec<Staged>,
}

#[derive(Debug)]
struct Staged {
    path: RelPath,
    temporary: OsString,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The new version is under the temporary name.
    Waiting,
    /// The new version is in place; nothing was there before.
    Created,
    /// The new version is in place, the old one is under the temporary name.
    Exchanged,
}

impl<'r> Batch<'r> {
    pub fn new(root: &'r Root) -> Self {
        Self { root, staged: Vec::new() }
    }

    /// Takes a file whose content is complete.
    pub fn add(&mut self, file: PendingFile) -> Result<(), RootedError> {
        let (path, temporary) = file.stage()?;
        self.staged.push(Staged { path, temporary, place: Place::Waiting });
        Ok(())
    }

    /// Puts all files in place, or none.
    pub fn commit(mut self) -> Result<(), RootedError> {
        for index in 0..self.staged.len() {
            // On an error, dropping the batch puts everything back.
            let placed = put_in_place(self.root, &self.staged[index])?;
            self.staged[index].place = placed;
        }
        for staged in self.staged.drain(..) {
            if staged.place == Place::Exchanged {
                // The new versions stand; an old one that cannot be removed is only litter.
                let _ = remove_temporary(self.root, &staged);
            }
        }
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for staged in self.staged.iter().rev() {
            let _ = put_back(self.root, staged);
        }
    }
}

fn put_in_place(root: &Root, staged: &Staged) -> Result<Place, RootedError> {
    let path = &staged.path;
    let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    let rename = |flags| renameat_with(&parent, &staged.temporary, &parent, name, flags);
    replaceable(&parent, name, path)?;
    match rename(RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(Place::Created),
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).at(path),
    }
    rename(RenameFlags::EXCHANGE).at(path)?;
    // What was really exchanged is only certain now.
    if let Err(error) = replaceable(&parent, &staged.temporary, path) {
        rename(RenameFlags::EXCHANGE).at(path)?;
        return Err(error);
    }
    Ok(Place::Exchanged)
}

fn put_back(root: &Root, staged: &Staged) -> Result<(), RootedError> {
    let path = &staged.path;
    let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    let flags = match staged.place {
        Place::Waiting => None,
        Place::Created => Some(RenameFlags::NOREPLACE),
        Place::Exchanged => Some(RenameFlags::EXCHANGE),
    };
    if let Some(flags) = flags {
        renameat_with(&parent, name, &parent, &staged.temporary, flags).at(path)?;
    }
    unlinkat(&parent, &staged.temporary, AtFlags::empty()).at(path)
}

fn remove_temporary(root: &Root, staged: &Staged) -> Result<(), RootedError> {
    let (directory, _) = staged.path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    unlinkat(&parent, &staged.temporary, AtFlags::empty()).at(&staged.path)
}
