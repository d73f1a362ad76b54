//! Going through everything below a directory, whatever its depth and width, without recursion.
//!
//! A directory is read to its end before anything in it is entered, so that little is open at a
//! time. What cannot be entered is told and passed over; links and other mounts are never entered.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use sandbank_protocol::FileKind;

use crate::descent::Descent;
use crate::limits::WALK_NAMES_BYTES;
use crate::{Directory, RootedError};

/// In which order the entries of a directory come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The file system's own, as soon as it tells them.
    Found,
    /// Bytewise by name, once all are known.
    Sorted,
}

/// How to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    Go,
    /// Not into this directory.
    Skip,
    Stop,
}

/// Whoever goes along. The depth of the top is 0, that of its entries 1.
pub trait Visitor {
    /// A directory has been opened; its entries follow.
    fn enter(&mut self, _dir: &Directory, _depth: usize) -> Visit {
        Visit::Go
    }

    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, kind: FileKind) -> Visit;

    /// Everything below a directory was visited.
    fn leave(&mut self, _dir: &Directory, _depth: usize) -> Visit {
        Visit::Go
    }

    /// A directory cannot be read, or not to its end.
    fn failed(&mut self, error: RootedError) -> Visit;
}

/// Goes through everything below `top`; false when the visitor stopped it.
pub fn walk(top: Directory, order: Order, visitor: &mut impl Visitor) -> bool {
    let mut walk =
        Walk { descent: Descent::new(top), pending: Vec::new(), remembered: 0, order, visitor };
    walk.run().is_continue()
}

struct Walk<'v, V> {
    descent: Descent,
    /// Of each level, the directories in it that are still to be entered.
    pending: Vec<Names>,
    /// Bytes of all those names.
    remembered: usize,
    order: Order,
    visitor: &'v mut V,
}

/// Names in one piece of memory, each behind its length.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    at: usize,
}

impl Names {
    fn push(&mut self, name: &OsStr) {
        let length = u16::try_from(name.len()).expect("the kernel's names are short");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
    }

    fn next(&mut self) -> Option<&OsStr> {
        let (length, rest) = self.bytes[self.at..].split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        self.at += 2 + length;
        Some(OsStr::from_bytes(&rest[..length]))
    }
}

impl<V: Visitor> Walk<'_, V> {
    fn run(&mut self) -> ControlFlow<()> {
        self.read_current()?;
        while !self.pending.is_empty() {
            self.step()?;
        }
        ControlFlow::Continue(())
    }

    /// Enters the next directory, or leaves this one.
    fn step(&mut self) -> ControlFlow<()> {
        let Some(pending) = self.pending.last_mut() else { return ControlFlow::Continue(()) };
        let Some(current) = self.descent.current() else { return self.leave() };
        let Some(name) = pending.next() else { return self.leave() };
        match current.open_directory(name) {
            Ok(dir) => match self.descent.enter(name, dir) {
                Ok(()) => self.read_current(),
                Err(error) => self.fail(error),
            },
            // It was removed since its name was read.
            Err(RootedError::NotFound(_)) => ControlFlow::Continue(()),
            Err(error) => self.fail(error),
        }
    }

    fn leave(&mut self) -> ControlFlow<()> {
        let depth = self.descent.depth();
        if let Some(dir) = self.descent.current() {
            stop_only(self.visitor.leave(dir, depth))?;
        }
        let done = self.pending.pop();
        self.remembered -= done.map_or(0, |names| names.bytes.len());
        match self.descent.leave() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(error),
        }
    }

    fn read_current(&mut self) -> ControlFlow<()> {
        let depth = self.descent.depth();
        let Some(dir) = self.descent.current() else { return ControlFlow::Continue(()) };
        stop_only(self.visitor.enter(dir, depth))?;
        let mut names = Names::default();
        let room = WALK_NAMES_BYTES.saturating_sub(self.remembered);
        let read = match self.order {
            Order::Found => found(dir, depth + 1, room, &mut names, self.visitor)?,
            Order::Sorted => sorted(dir, depth + 1, room, &mut names, self.visitor)?,
        };
        self.remembered += names.bytes.len();
        self.pending.push(names);
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: RootedError) -> ControlFlow<()> {
        stop_only(self.visitor.failed(error))
    }
}

fn stop_only(visit: Visit) -> ControlFlow<()> {
    if visit == Visit::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What a name to be sorted takes beside its text: its place in the list, and the allocator's part.
const SORTED_NAME_BYTES: usize = size_of::<(OsString, FileKind)>() + 32;

/// What reading a directory came to, unless the visitor stopped it.
type Read = ControlFlow<(), Result<(), RootedError>>;

fn found(
    dir: &Directory,
    depth: usize,
    room: usize,
    names: &mut Names,
    visitor: &mut impl Visitor,
) -> Read {
    let mut stopped = false;
    let mut full = false;
    let read = dir.each(|name, kind| match visitor.entry(dir, depth, name, kind) {
        Visit::Stop => {
            stopped = true;
            ControlFlow::Break(())
        }
        Visit::Go if kind == FileKind::Directory => {
            full = names.bytes.len() + name.len() + 2 > room;
            if full {
                return ControlFlow::Break(());
            }
            names.push(name);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    });
    match (stopped, full) {
        (true, _) => ControlFlow::Break(()),
        (_, true) => ControlFlow::Continue(Err(RootedError::TooWide(dir.path().clone()))),
        _ => ControlFlow::Continue(read),
    }
}

fn sorted(
    dir: &Directory,
    depth: usize,
    room: usize,
    names: &mut Names,
    visitor: &mut impl Visitor,
) -> Read {
    let mut all = Vec::new();
    let mut bytes = 0;
    let read = dir.each(|name, kind| {
        bytes += name.len() + SORTED_NAME_BYTES;
        if bytes > room {
            return ControlFlow::Break(());
        }
        all.push((name.to_owned(), kind));
        ControlFlow::Continue(())
    });
    all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, kind) in all {
        match visitor.entry(dir, depth, &name, kind) {
            Visit::Stop => return ControlFlow::Break(()),
            Visit::Go if kind == FileKind::Directory => names.push(&name),
            _ => {}
        }
    }
    match bytes > room {
        true => ControlFlow::Continue(Err(RootedError::TooWide(dir.path().clone()))),
        false => ControlFlow::Continue(read),
    }
}
