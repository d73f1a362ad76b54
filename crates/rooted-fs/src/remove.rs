//! Removing files and trees by descriptor, without ever following a link.
//!
//! A tree is walked iteratively: files go at once, directories when they are empty. Only the
//! deepest directories are held open; on the way up, forgotten ones are reopened from the top by
//! name and must be the same directories as before. When the tree changes meanwhile, what is
//! found next counts: the walk looks again, a bounded number of times.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, fchmod, fstat, seek, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::error::At;
use crate::limits::{
    DIRECTORY_BUFFER_BYTES, MAX_PATH_BYTES, REMOVAL_HELD_DIRECTORIES, REMOVAL_RETRIES,
};
use crate::opening::open_below;
use crate::{RelPath, Root, RootedError};

/// A tree being removed, in steps.
#[derive(Debug)]
pub struct Removal {
    path: RelPath,
    /// The directory that holds the top of the tree.
    parent: OwnedFd,
    /// From the top of the tree to the directory being emptied.
    levels: Vec<Level>,
    retries: u32,
}

#[derive(Debug)]
struct Level {
    name: OsString,
    identity: (u64, u64),
    /// Closed when it is too far up.
    dir: Option<OwnedFd>,
    /// Directories seen in it and not yet entered.
    subdirectories: Vec<OsString>,
    /// Whether this pass over the entries found any.
    found: bool,
}

/// Why a level cannot go on.
enum Stop {
    /// It is not where it was; start again from the top.
    Moved,
    Failed(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl Root {
    /// Removes a file, a link, or an empty directory.
    pub fn remove(&self, path: &RelPath) -> Result<(), RootedError> {
        let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
        let parent = self.resolve_directory(&directory)?;
        match unlinkat(&parent, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(&parent, name, AtFlags::REMOVEDIR).at(path),
            answer => answer.at(path),
        }
    }

    /// Begins to remove whatever is at `path`; it must exist.
    pub fn begin_removal(&self, path: &RelPath) -> Result<Removal, RootedError> {
        let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
        let parent = self.resolve_directory(&directory)?;
        statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).at(path)?;
        Removal::begin(parent, name, path)
    }

    /// Removes whatever is at `path`, all at once.
    pub fn remove_all(&self, path: &RelPath) -> Result<(), RootedError> {
        let mut removal = self.begin_removal(path)?;
        while !removal.step()? {}
        Ok(())
    }
}

impl Removal {
    /// Of `name` in `parent`; the path is for messages.
    pub(crate) fn begin(
        parent: OwnedFd,
        name: &OsStr,
        path: &RelPath,
    ) -> Result<Self, RootedError> {
        let mut removal = Self { path: path.clone(), parent, levels: Vec::new(), retries: 0 };
        removal.enter_top(name).map_err(|errno| removal.failure(errno))?;
        Ok(removal)
    }

    /// Does a bounded piece of the work; true when everything is gone.
    pub fn step(&mut self) -> Result<bool, RootedError> {
        let Some(level) = self.levels.len().checked_sub(1) else { return Ok(true) };
        match self.advance(level) {
            Ok(()) => Ok(self.levels.is_empty()),
            Err(Stop::Failed(errno)) => Err(self.failure(errno)),
            Err(Stop::Moved) => {
                self.count_retry().at(&self.path)?;
                let top = self.levels.swap_remove(0).name;
                self.levels.clear();
                self.enter_top(&top).map_err(|errno| self.failure(errno))?;
                Ok(self.levels.is_empty())
            }
        }
    }

    fn failure(&self, errno: Errno) -> RootedError {
        match errno {
            // A mount below, not an escape.
            Errno::XDEV => RootedError::Kernel { path: self.path.clone(), source: errno },
            errno => RootedError::from_errno(errno, &self.path),
        }
    }

    /// Pushes the top directory, or removes the top right away when it is none.
    fn enter_top(&mut self, name: &OsStr) -> Result<(), Errno> {
        match enter(&self.parent, name)? {
            Entered::Directory(level) => self.levels.push(level),
            Entered::Removed => {}
        }
        Ok(())
    }

    fn advance(&mut self, index: usize) -> Result<(), Stop> {
        self.reopen(index)?;
        let level = &mut self.levels[index];
        let dir = level.dir.as_ref().ok_or(Stop::Moved)?;
        if let Some(name) = level.subdirectories.pop() {
            if let Entered::Directory(child) = enter(dir, &name)? {
                self.levels.push(child);
                if let Some(far) = self.levels.len().checked_sub(REMOVAL_HELD_DIRECTORIES + 1) {
                    self.levels[far].dir = None;
                }
            }
            return Ok(());
        }
        if level.sweep()? {
            return Ok(());
        }
        let empty = self.levels.pop().expect("the level that was swept");
        self.leave(empty)
    }

    /// Removes a directory that was found empty. Whatever came into it meanwhile is found again
    /// by the next pass over its parent.
    fn leave(&mut self, empty: Level) -> Result<(), Stop> {
        let answer = match self.levels.len().checked_sub(1) {
            Some(above) => {
                self.reopen(above)?;
                let above = self.levels[above].dir.as_ref().ok_or(Stop::Moved)?;
                unlink_owned(above, &empty.name, AtFlags::REMOVEDIR)
            }
            None => unlinkat(&self.parent, &empty.name, AtFlags::REMOVEDIR),
        };
        match answer {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) if self.levels.is_empty() => {
                self.levels.push(empty);
                Err(Stop::Moved)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(self.count_retry()?),
            Err(errno) => Err(Stop::Failed(errno)),
        }
    }

    fn count_retry(&mut self) -> Result<(), Errno> {
        self.retries += 1;
        if self.retries > REMOVAL_RETRIES { Err(Errno::AGAIN) } else { Ok(()) }
    }

    /// Opens a level that was closed on the way down, and those just above it.
    fn reopen(&mut self, index: usize) -> Result<(), Stop> {
        if self.levels[index].dir.is_some() {
            return Ok(());
        }
        let first = index.saturating_sub(REMOVAL_HELD_DIRECTORIES / 2);
        let mut above = self.descend_to(first)?;
        for level in &mut self.levels[first..=index] {
            let base = above.as_ref().unwrap_or(&self.parent);
            let dir = open_directory(base, level.name.as_bytes()).map_err(|_| Stop::Moved)?;
            if identity(&dir)? != level.identity {
                return Err(Stop::Moved);
            }
            above = Some(dir.try_clone().map_err(|_| Errno::MFILE)?);
            level.dir = Some(dir);
        }
        Ok(())
    }

    /// The directory that should hold the level `end`, many names at a time; none for the top.
    /// Whether it is the right one shows in the identity of what is in it.
    fn descend_to(&self, end: usize) -> Result<Option<OwnedFd>, Stop> {
        let mut above: Option<OwnedFd> = None;
        let mut names = self.levels[..end].iter().map(|level| level.name.as_bytes()).peekable();
        while let Some(name) = names.next() {
            let mut run = name.to_vec();
            while let Some(next) = names.next_if(|next| run.len() + next.len() < MAX_PATH_BYTES - 1)
            {
                run.push(b'/');
                run.extend_from_slice(next);
            }
            let base = above.as_ref().unwrap_or(&self.parent);
            above = Some(open_directory(base, &run).map_err(|_| Stop::Moved)?);
        }
        Ok(above)
    }
}

enum Entered {
    Directory(Level),
    Removed,
}

/// Opens a directory to empty it; anything else that turns out to have this name is removed.
fn enter(parent: &OwnedFd, name: &OsStr) -> Result<Entered, Errno> {
    match open_directory(parent, name.as_bytes()) {
        Ok(dir) => Ok(Entered::Directory(Level {
            name: name.to_owned(),
            identity: identity(&dir)?,
            dir: Some(dir),
            subdirectories: Vec::new(),
            found: false,
        })),
        Err(Errno::NOENT) => Ok(Entered::Removed),
        Err(Errno::NOTDIR | Errno::LOOP) => match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(Entered::Removed),
            Err(errno) => Err(errno),
        },
        // An empty directory can go without being looked into.
        Err(Errno::ACCESS) => match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(Entered::Removed),
            Err(_) => Err(Errno::ACCESS),
        },
        Err(errno) => Err(errno),
    }
}

fn open_directory(parent: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    // Not into other mounts: what is in them is not part of this tree.
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    open_below(parent, path, flags, resolve)
}

#[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
fn identity(dir: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(dir).map(|stat| (stat.st_dev as u64, stat.st_ino as u64))
}

impl Level {
    /// Removes the files among the next entries and notes the directories. False when a whole
    /// pass over the directory found nothing.
    fn sweep(&mut self) -> Result<bool, Errno> {
        let dir = self.dir.take().ok_or(Errno::BADF)?;
        let answer = self.sweep_buffer(&dir);
        self.dir = Some(dir);
        answer
    }

    fn sweep_buffer(&mut self, dir: &OwnedFd) -> Result<bool, Errno> {
        let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BUFFER_BYTES];
        let mut reader = RawDir::new(dir, &mut buffer);
        loop {
            let Some(entry) = reader.next() else {
                let again = std::mem::take(&mut self.found);
                seek(dir, SeekFrom::Start(0))?;
                return Ok(again);
            };
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if !matches!(name.as_bytes(), b"." | b"..") {
                self.found = true;
                if entry.file_type() == FileType::Directory || !unlink(dir, name)? {
                    self.subdirectories.push(name.to_owned());
                }
            }
            if reader.is_buffer_empty() {
                return Ok(true);
            }
        }
    }
}

/// False when the name is a directory.
fn unlink(dir: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    match unlink_owned(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Unlinks in a directory of the tree, which its owner may have made read-only: module caches
/// have many such.
fn unlink_owned(dir: &OwnedFd, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    match unlinkat(dir, name, flags) {
        Err(Errno::ACCESS) => {
            fchmod(dir, Mode::RWXU).map_err(|_| Errno::ACCESS)?;
            unlinkat(dir, name, flags)
        }
        answer => answer,
    }
}
