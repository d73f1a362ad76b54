//! A whole tree into an empty directory.

use std::ffi::OsStr;

use rustix::fs::{Mode, fchmod, fstat, mkdirat, symlinkat};
use rustix::io::Errno;
use sandbank_protocol::FileKind;

use crate::copy::copy_file;
use crate::descent::{Descent, Identity, identity};
use crate::error::At;
use crate::limits::{MAX_TREE_ENTRIES, MAX_TREE_LEVELS};
use crate::opening::create_in;
use crate::{Directory, Order, RootedError, Visit, Visitor, walk};

/// Copies everything below `from`. Whatever fails ends it; what has been copied stays.
pub(crate) fn copy_tree(
    from: Directory,
    to: Directory,
    wanted: &dyn Fn() -> bool,
) -> Result<(), RootedError> {
    let own = identity(&to.fd).at(&to.path)?;
    let mut copy = TreeCopy { target: Descent::new(to), own, entries: 0, failure: None, wanted };
    walk(from, Order::Found, &mut copy);
    copy.failure.map_or(Ok(()), Err)
}

struct TreeCopy<'w> {
    /// Where the walk is, on the other side.
    target: Descent,
    /// The copy's top: met on the walk, it is being copied into itself.
    own: Identity,
    entries: u64,
    failure: Option<RootedError>,
    wanted: &'w dyn Fn() -> bool,
}

impl Visitor for TreeCopy<'_> {
    fn enter(&mut self, dir: &Directory, depth: usize) -> Visit {
        let entered = self.make(dir, depth);
        self.note(entered)
    }

    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, kind: FileKind) -> Visit {
        let copied = match depth > MAX_TREE_LEVELS {
            true => Err(RootedError::TooDeep(dir.path.clone())),
            false => self.copy(dir, name, kind),
        };
        self.note(copied)
    }

    fn leave(&mut self, dir: &Directory, depth: usize) -> Visit {
        let left = self.finish(dir, depth);
        self.note(left)
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        self.note(Err(error))
    }
}

impl TreeCopy<'_> {
    fn note(&mut self, result: Result<(), RootedError>) -> Visit {
        match result {
            Ok(()) => Visit::Go,
            Err(error) => {
                self.failure.get_or_insert(error);
                Visit::Stop
            }
        }
    }

    fn target(&self) -> Result<&Directory, RootedError> {
        self.target.current().ok_or_else(|| RootedError::Contended(crate::RelPath::root()))
    }

    fn make(&mut self, dir: &Directory, depth: usize) -> Result<(), RootedError> {
        if identity(&dir.fd).at(&dir.path)? == self.own {
            return Err(RootedError::IntoItself(dir.path.clone()));
        }
        let Some((_, name)) = dir.path.split().filter(|_| depth > 0) else { return Ok(()) };
        let above = self.target()?;
        mkdirat(&above.fd, name, Mode::RWXU).at(&above.path.join(name))?;
        let made = above.open_directory(name)?;
        self.target.enter(name, made)
    }

    fn finish(&mut self, dir: &Directory, depth: usize) -> Result<(), RootedError> {
        let mode = fstat(&dir.fd).at(&dir.path)?.st_mode & 0o777;
        let made = self.target()?;
        fchmod(&made.fd, Mode::from_raw_mode(mode)).at(&made.path)?;
        if depth > 0 { self.target.leave() } else { Ok(()) }
    }

    fn copy(&mut self, dir: &Directory, name: &OsStr, kind: FileKind) -> Result<(), RootedError> {
        self.entries += 1;
        if self.entries > MAX_TREE_ENTRIES {
            return Err(RootedError::TooWide(dir.path.clone()));
        }
        if !(self.wanted)() {
            return Err(RootedError::Abandoned(dir.path.clone()));
        }
        match kind {
            FileKind::Directory => Ok(()),
            FileKind::File => self.copy_file(dir, name),
            FileKind::Symlink => {
                let Some(target) = dir.read_link(name)? else { return Ok(()) };
                let above = self.target()?;
                symlinkat(&target, &above.fd, name).at(&above.path.join(name))
            }
            FileKind::Other => Err(RootedError::WrongKind {
                path: dir.path.join(name),
                found: kind,
                wanted: FileKind::File,
            }),
        }
    }

    fn copy_file(&self, dir: &Directory, name: &OsStr) -> Result<(), RootedError> {
        let file = match dir.open_file(name) {
            // It was removed since its name was read.
            Err(RootedError::NotFound(_)) => return Ok(()),
            file => file?,
        };
        let above = self.target()?;
        let copy = loop {
            match create_in(&above.fd, name) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                answer => break answer.at(&above.path.join(name))?,
            }
        };
        copy_file(&file, &copy, self.wanted)
    }
}
