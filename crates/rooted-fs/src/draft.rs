//! Something under a temporary name that takes its place when it is whole, or goes.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, Mode, OFlags, ResolveFlags, mkdirat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::limits::TEMPORARY_NAME_ATTEMPTS;
use crate::opening::open_below;
use crate::pending::{create_temporary, random_name, replaceable};
use crate::remove::Removal;
use crate::renaming::rename_new;
use crate::stat::describe;
use crate::{Directory, Overwrite, RelPath, RootedError};

/// Dropping it removes what there is under the temporary name.
#[derive(Debug)]
pub(crate) struct Draft {
    parent: OwnedFd,
    temporary: Option<OsString>,
    /// Where it is to be.
    path: RelPath,
}

impl Draft {
    /// Of a file; it is open for writing.
    pub(crate) fn file(parent: OwnedFd, path: &RelPath) -> Result<(Self, OwnedFd), RootedError> {
        let (temporary, file) = create_temporary(&parent).at(path)?;
        Ok((Self::new(parent, temporary, path), file))
    }

    pub(crate) fn link(
        parent: OwnedFd,
        path: &RelPath,
        target: &OsStr,
    ) -> Result<Self, RootedError> {
        Self::of(parent, path, |parent, name| symlinkat(target, parent, name))
    }

    /// Of a directory that nobody else may look into yet.
    pub(crate) fn directory(
        parent: OwnedFd,
        path: &RelPath,
    ) -> Result<(Self, Directory), RootedError> {
        let temporary = named(|name| mkdirat(&parent, name, Mode::RWXU)).at(path)?;
        let draft = Self::new(parent, temporary, path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let name = draft.temporary.as_deref().unwrap_or_default().as_bytes();
        let fd = open_below(&draft.parent, name, flags, resolve).at(path)?;
        Ok((draft, Directory { fd, path: path.clone() }))
    }

    /// For something made by the caller: gives names until one is not taken.
    pub(crate) fn of(
        parent: OwnedFd,
        path: &RelPath,
        make: impl Fn(&OwnedFd, &OsStr) -> Result<(), Errno>,
    ) -> Result<Self, RootedError> {
        let temporary = named(|name| make(&parent, name)).at(path)?;
        Ok(Self::new(parent, temporary, path))
    }

    fn new(parent: OwnedFd, temporary: OsString, path: &RelPath) -> Self {
        Self { parent, temporary: Some(temporary), path: path.clone() }
    }

    /// Puts it in its place, atomically.
    pub(crate) fn place(mut self, overwrite: Overwrite) -> Result<FileStat, RootedError> {
        let Self { parent, path, .. } = &self;
        let (_, name) = path.split().ok_or(RootedError::IsRoot)?;
        let temporary = self.temporary.as_deref().expect("only this takes it");
        let placed = match overwrite {
            Overwrite::No => rename_new((parent, temporary), (parent, name)),
            Overwrite::Yes => {
                self.fits(name)?;
                renameat(parent, temporary, parent, name)
            }
        };
        placed.at(path)?;
        // A rename onto another name of the same file does nothing, and leaves both.
        let _ = unlinkat(parent, temporary, AtFlags::empty());
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).at(path);
        self.temporary = None;
        stat.map(|stat| describe(&stat))
    }

    /// Of what is there.
    pub(crate) fn kind(&self) -> Result<FileKind, RootedError> {
        let temporary = self.temporary.as_deref().unwrap_or_default();
        let stat = statat(&self.parent, temporary, AtFlags::SYMLINK_NOFOLLOW).at(&self.path)?;
        Ok(describe(&stat).kind)
    }

    /// A directory replaces an empty directory only, anything else a file or a link.
    fn fits(&self, name: &OsStr) -> Result<(), RootedError> {
        if self.kind()? != FileKind::Directory {
            return replaceable(&self.parent, name, &self.path).map(drop);
        }
        let found = match statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => describe(&stat).kind,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno).at(&self.path),
        };
        match found {
            FileKind::Directory => Ok(()),
            found => {
                let (path, wanted) = (self.path.clone(), FileKind::Directory);
                Err(RootedError::WrongKind { path, found, wanted })
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Some(temporary) = self.temporary.take() else { return };
        let Ok(parent) = self.parent.try_clone() else { return };
        let Ok(mut removal) = Removal::begin(parent, &temporary, &self.path) else { return };
        while matches!(removal.step(), Ok(false)) {}
    }
}

/// Tries random names until one is free.
fn named(make: impl Fn(&OsStr) -> Result<(), Errno>) -> Result<OsString, Errno> {
    let mut answer = Err(Errno::EXIST);
    for _ in 0..TEMPORARY_NAME_ATTEMPTS {
        let name = random_name()?;
        answer = make(&name).map(|()| name);
        if !matches!(answer, Err(Errno::EXIST | Errno::INTR)) {
            break;
        }
    }
    answer
}
