//! Permission bits of files and directories, never through a link.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::limits::{MAX_TREE_ENTRIES, MAX_TREE_LEVELS};
use crate::opening::open_below;
use crate::stat::Links;
use crate::{Directory, Order, RelPath, Root, RootedError, Visit, Visitor, walk};

/// Who may read and enter a directory may do so while what is below it changes.
const OWNER_ENTERS: u32 = 0o500;

impl Root {
    /// Sets the nine permission bits; with `recursive` also those of every file and directory
    /// below. Links are refused, below a directory they are passed over, as are devices, sockets
    /// and pipes. The first failure ends it.
    pub fn chmod(
        &self,
        path: &RelPath,
        mode: u32,
        recursive: bool,
        wanted: &dyn Fn() -> bool,
    ) -> Result<FileStat, RootedError> {
        let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
        let fd = self.resolve_directory(&directory)?;
        let parent = Directory { fd, path: directory };
        let Some(found) = parent.stat(name)? else {
            return Err(RootedError::NotFound(path.clone()));
        };
        if !matches!(found.kind, FileKind::File | FileKind::Directory) {
            let path = path.clone();
            let (found, wanted) = (found.kind, FileKind::File);
            return Err(RootedError::WrongKind { path, found, wanted });
        }
        let mode = mode & 0o777;
        if recursive && found.kind == FileKind::Directory {
            let before = mode & OWNER_ENTERS == OWNER_ENTERS;
            if before {
                set(&parent, name, mode)?;
            }
            let top = parent.open_directory(name)?;
            let mut change = Change { mode, before, entries: 0, failure: None, wanted };
            walk(top, Order::Found, &mut change);
            if let Some(failure) = change.failure {
                return Err(failure);
            }
        } else {
            set(&parent, name, mode)?;
        }
        self.stat(path, Links::Keep)
    }
}

struct Change<'w> {
    mode: u32,
    /// Whether a directory changes before what is in it: so it can be entered if it could not be
    /// before, and otherwise it still can.
    before: bool,
    entries: u64,
    failure: Option<RootedError>,
    wanted: &'w dyn Fn() -> bool,
}

impl Visitor for Change<'_> {
    fn entry(&mut self, dir: &Directory, depth: usize, name: &OsStr, kind: FileKind) -> Visit {
        self.entries += 1;
        if depth > MAX_TREE_LEVELS {
            return self.failed(RootedError::TooDeep(dir.path.clone()));
        }
        if self.entries > MAX_TREE_ENTRIES {
            return self.failed(RootedError::TooWide(dir.path.clone()));
        }
        if !(self.wanted)() {
            return self.failed(RootedError::Abandoned(dir.path.clone()));
        }
        let changes = match kind {
            FileKind::File => true,
            FileKind::Directory => self.before,
            FileKind::Symlink | FileKind::Other => false,
        };
        if !changes {
            return Visit::Go;
        }
        match set(dir, name, self.mode) {
            // It is gone, or a link by now.
            Ok(()) | Err(RootedError::NotFound(_) | RootedError::WrongKind { .. }) => Visit::Go,
            Err(error) => self.failed(error),
        }
    }

    fn leave(&mut self, dir: &Directory, _: usize) -> Visit {
        if self.before {
            return Visit::Go;
        }
        match fchmod(&dir.fd, Mode::from_raw_mode(self.mode)).at(&dir.path) {
            Ok(()) => Visit::Go,
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        self.failure.get_or_insert(error);
        Visit::Stop
    }
}

/// Of an entry itself. A link that came in its place is refused.
fn set(dir: &Directory, name: &OsStr, mode: u32) -> Result<(), RootedError> {
    let answer = match change_entry(&dir.fd, name, mode) {
        // Before Linux 6.6, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => change_opened(&dir.fd, name, mode),
        answer => answer,
    };
    match answer {
        Err(Errno::OPNOTSUPP | Errno::LOOP) => Err(RootedError::WrongKind {
            path: dir.path.join(name),
            found: FileKind::Symlink,
            wanted: FileKind::File,
        }),
        answer => answer.at(&dir.path.join(name)),
    }
}

/// By one call that needs no right to open it.
#[allow(unsafe_code, reason = "rustix has no such call yet")]
fn change_entry(dir: &OwnedFd, name: &OsStr, mode: u32) -> Result<(), Errno> {
    const FCHMODAT2: libc::c_long = 452;
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the descriptor is open and the name is a terminated string, both for the whole call.
    let answer = unsafe { libc::syscall(FCHMODAT2, dir.as_raw_fd(), name.as_ptr(), mode, flags) };
    if answer == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn change_opened(dir: &OwnedFd, name: &OsStr, mode: u32) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let file = open_below(dir, name.as_bytes(), flags, resolve)?;
    fchmod(&file, Mode::from_raw_mode(mode))
}
