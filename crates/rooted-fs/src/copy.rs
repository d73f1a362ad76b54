//! Copying a file, a link or a whole tree within the root.
//!
//! The copy grows under a temporary name beside its target and takes its place when it is whole,
//! so a failure leaves nothing there. Links are copied as links. Devices, sockets and pipes are
//! refused by name.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, statat};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::contents::copy_contents;
use crate::copy_tree::copy_tree;
use crate::draft::Draft;
use crate::error::At;
use crate::stat::Links;
use crate::{Directory, Overwrite, RegularFile, RelPath, Root, RootedError};

impl Root {
    /// Copies what is at `from` itself to `to`, whose parent must exist. Permission bits are kept,
    /// owners and times are not. Ends early when `wanted` says no.
    ///
    /// Something existing is replaced as [`Root::rename`] does.
    pub fn copy(
        &self,
        from: &RelPath,
        to: &RelPath,
        overwrite: Overwrite,
        wanted: &dyn Fn() -> bool,
    ) -> Result<FileStat, RootedError> {
        let (from_directory, from_name) = from.split().ok_or(RootedError::IsRoot)?;
        let (to_directory, to_name) = to.split().ok_or(RootedError::IsRoot)?;
        let fd = self.resolve_directory(&from_directory)?;
        let source = Directory { fd, path: from_directory };
        let Some(found) = source.stat(from_name)? else {
            return Err(RootedError::NotFound(from.clone()));
        };
        if found.kind == FileKind::Directory && from != to && to.is_within(from) {
            return Err(RootedError::IntoItself(from.clone()));
        }
        let parent = self.resolve_directory(&to_directory)?;
        if overwrite == Overwrite::No {
            // Known only when it is put in place, but most often it can be said at once.
            match statat(&parent, to_name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => {}
                Ok(_) => return Err(RootedError::AlreadyExists(to.clone())),
                Err(errno) => return Err(errno).at(to),
            }
        }
        let draft = match found.kind {
            FileKind::File => {
                let (draft, file) = Draft::file(parent, to)?;
                copy_file(&source.open_file(from_name)?, &file, wanted)?;
                draft
            }
            FileKind::Symlink => {
                let target = source.read_link(from_name)?;
                let target = target.ok_or_else(|| RootedError::Contended(from.clone()))?;
                Draft::link(parent, to, &target)?
            }
            FileKind::Directory => {
                let top = source.open_directory(from_name)?;
                let (draft, target) = Draft::directory(parent, to)?;
                copy_tree(top, target, wanted)?;
                draft
            }
            FileKind::Other => {
                let (path, found) = (from.clone(), FileKind::Other);
                return Err(RootedError::WrongKind { path, found, wanted: FileKind::File });
            }
        };
        draft.place(overwrite)
    }

    /// A directory as a root of its own: nothing done below it leads out of it.
    pub fn below(&self, path: &RelPath) -> Result<Root, RootedError> {
        let dir = self.resolve(path, OFlags::PATH | OFlags::DIRECTORY, Links::Follow)?;
        Ok(Root { dir, names: crate::RootNames::none() })
    }
}

/// Content and permission bits.
pub(crate) fn copy_file(
    from: &RegularFile,
    to: &OwnedFd,
    wanted: &dyn Fn() -> bool,
) -> Result<(), RootedError> {
    match copy_contents(&from.fd, to, from.stat.size, wanted) {
        Err(Errno::CANCELED) => return Err(RootedError::Abandoned(from.path.clone())),
        answer => answer.at(&from.path)?,
    }
    fchmod(to, Mode::from_raw_mode(from.stat.mode & 0o777)).at(&from.path)
}
