//! Several files that appear together or not at all.
//!
//! All contents are written first. Then each file takes its place by an exchange that keeps the
//! old version under the temporary name, so that a failure at the last one still puts every old
//! version back. Descriptors are closed in between: a batch may have more files than a process
//! may have open.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::error::At;
use crate::pending::{random_name, replaceable};
use crate::renaming::rename_new;
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
    /// The same, on a file system that cannot exchange.
    Replaced,
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
            put_in_place(self.root, &mut self.staged[index])?;
        }
        for staged in self.staged.drain(..) {
            if matches!(staged.place, Place::Exchanged | Place::Replaced) {
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

fn put_in_place(root: &Root, staged: &mut Staged) -> Result<(), RootedError> {
    let path = &staged.path;
    let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    replaceable(&parent, name, path)?;
    let temporary = staged.temporary.as_os_str();
    match rename_new((&parent, temporary), (&parent, name)) {
        Ok(()) => {
            staged.place = Place::Created;
            return Ok(());
        }
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno).at(path),
    }
    let exchange = || renameat_with(&parent, temporary, &parent, name, RenameFlags::EXCHANGE);
    match exchange() {
        // The file system cannot (volumes of gVisor).
        Err(Errno::INVAL) => return replace(&parent, staged),
        answer => answer.at(path)?,
    }
    // What was really exchanged is only certain now.
    if let Err(error) = replaceable(&parent, temporary, path) {
        exchange().at(path)?;
        return Err(error);
    }
    staged.place = Place::Exchanged;
    Ok(())
}

/// Keeps the old version under another name first.
fn replace(parent: &OwnedFd, staged: &mut Staged) -> Result<(), RootedError> {
    let path = &staged.path;
    let (_, name) = path.split().ok_or(RootedError::IsRoot)?;
    let kept = random_name().at(path)?;
    linkat(parent, name, parent, &kept, AtFlags::empty()).at(path)?;
    if let Err(errno) = renameat(parent, &staged.temporary, parent, name) {
        let _ = unlinkat(parent, &kept, AtFlags::empty());
        return Err(errno).at(path);
    }
    (staged.temporary, staged.place) = (kept, Place::Replaced);
    Ok(())
}

fn put_back(root: &Root, staged: &Staged) -> Result<(), RootedError> {
    let path = &staged.path;
    let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    let temporary = staged.temporary.as_os_str();
    match staged.place {
        Place::Waiting => {}
        Place::Created => rename_new((&parent, name), (&parent, temporary)).at(path)?,
        Place::Exchanged => {
            renameat_with(&parent, name, &parent, temporary, RenameFlags::EXCHANGE).at(path)?;
        }
        Place::Replaced => return renameat(&parent, temporary, &parent, name).at(path),
    }
    unlinkat(&parent, temporary, AtFlags::empty()).at(path)
}

fn remove_temporary(root: &Root, staged: &Staged) -> Result<(), RootedError> {
    let (directory, _) = staged.path.split().ok_or(RootedError::IsRoot)?;
    let parent = root.resolve_directory(&directory)?;
    unlinkat(&parent, &staged.temporary, AtFlags::empty()).at(&staged.path)
}
