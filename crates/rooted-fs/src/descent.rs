//! A way down from a directory, of which only the deepest descriptors are held.
//!
//! Directories that were closed on the way down are opened again on the way up, by name from the
//! top, and must be the same ones as before.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{OFlags, ResolveFlags, fstat};
use rustix::io::Errno;

use crate::error::At;
use crate::limits::{MAX_PATH_BYTES, WALK_HELD_DIRECTORIES};
use crate::opening::open_below;
use crate::{Directory, RootedError};

pub(crate) struct Descent {
    top: Directory,
    below: Vec<Level>,
}

struct Level {
    name: OsString,
    dir: Held,
}

enum Held {
    Open(Directory),
    /// Too far up; which one it was.
    Closed(Identity),
}

/// Device and inode.
pub(crate) type Identity = (u64, u64);

#[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
pub(crate) fn identity(dir: &OwnedFd) -> Result<Identity, Errno> {
    fstat(dir).map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
}

impl Descent {
    pub(crate) fn new(top: Directory) -> Self {
        Self { top, below: Vec::new() }
    }

    /// How far below the top.
    pub(crate) fn depth(&self) -> usize {
        self.below.len()
    }

    /// The deepest. After a [`Self::leave`] that failed there is none: leave that level, too.
    pub(crate) fn current(&self) -> Option<&Directory> {
        match self.below.last() {
            None => Some(&self.top),
            Some(Level { dir: Held::Open(dir), .. }) => Some(dir),
            Some(_) => None,
        }
    }

    /// Goes into a directory of the deepest one.
    pub(crate) fn enter(&mut self, name: &OsStr, dir: Directory) -> Result<(), RootedError> {
        if let Some(far) = self.below.len().checked_sub(WALK_HELD_DIRECTORIES)
            && let Held::Open(dir) = &self.below[far].dir
        {
            self.below[far].dir = Held::Closed(identity(&dir.fd).at(&dir.path)?);
        }
        self.below.push(Level { name: name.to_owned(), dir: Held::Open(dir) });
        Ok(())
    }

    /// Goes back up.
    pub(crate) fn leave(&mut self) -> Result<(), RootedError> {
        self.below.pop();
        match self.below.last() {
            Some(Level { dir: Held::Closed(_), .. }) => self.reopen(),
            _ => Ok(()),
        }
    }

    /// Opens the deepest one again, and some of those above it.
    fn reopen(&mut self) -> Result<(), RootedError> {
        let first = self.below.len().saturating_sub(WALK_HELD_DIRECTORIES / 2);
        let mut above = self.far_down(first)?;
        for level in &mut self.below[first..] {
            let dir = above.as_ref().unwrap_or(&self.top).open_directory(&level.name);
            let dir = dir.map_err(|error| moved(error, &self.top))?;
            if let Held::Closed(before) = level.dir
                && identity(&dir.fd).at(&dir.path)? != before
            {
                return Err(RootedError::Contended(dir.path));
            }
            let again = dir.fd.try_clone().map_err(|_| Errno::MFILE).at(&dir.path)?;
            above = Some(Directory { fd: again, path: dir.path.clone() });
            level.dir = Held::Open(dir);
        }
        Ok(())
    }

    /// The directory above the level `end`, many names at a time; none for the top. Whether it is
    /// the right one shows in the identity of what is in it.
    fn far_down(&self, end: usize) -> Result<Option<Directory>, RootedError> {
        let mut above: Option<Directory> = None;
        let mut names = self.below[..end].iter().map(|level| level.name.as_bytes()).peekable();
        while let Some(name) = names.next() {
            let mut run = name.to_vec();
            while let Some(next) = names.next_if(|next| run.len() + next.len() < MAX_PATH_BYTES - 1)
            {
                run.push(b'/');
                run.extend_from_slice(next);
            }
            let base = above.as_ref().unwrap_or(&self.top);
            let path = base.path.join(OsStr::from_bytes(&run));
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            let fd = open_below(&base.fd, &run, flags, resolve).at(&path);
            above = Some(Directory { fd: fd.map_err(|error| moved(error, &self.top))?, path });
        }
        Ok(above)
    }
}

/// A directory that was there and is not there any more has been moved about.
fn moved(error: RootedError, top: &Directory) -> RootedError {
    match error {
        RootedError::TooManyOpenFiles(_) | RootedError::Kernel { .. } => error,
        _ => RootedError::Contended(top.path.clone()),
    }
}
