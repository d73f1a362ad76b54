//! A path resolved one name at a time, for kernels that have no `openat2`, with the meaning of its
//! `RESOLVE_…` flags.
//!
//! Every step looks up one name in a directory that is held open, and never through a link: a link
//! is read, and what it says is looked up in the same way. `..` is the held directory from which
//! the last one was entered, not what the disk calls its parent by now. So whatever is renamed
//! meanwhile, each directory of the way was found in the one before it, and the first is the top.
//!
//! Stricter than the kernel: no link of a `/proc` is followed, for which of them are magic does
//! not show.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, StatxFlags, fstat,
    fstatfs, openat, readlinkat, statx,
};
use rustix::io::Errno;

use crate::limits::{MAX_LINKS, MAX_PATH_BYTES, STEPWISE_HELD_DIRECTORIES};

/// Opens what is at `path`, from `top`; `flags` never create. With `BENEATH` nothing above `top` is
/// reached; without, `top` must be `/`. `EAGAIN` when something was swapped during the last step.
pub(crate) fn open(
    top: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.len() >= MAX_PATH_BYTES {
        return Err(Errno::NAMETOOLONG);
    }
    let mut way = Way {
        top,
        entered: Vec::new(),
        names: Vec::new(),
        ends_in_directory: false,
        links: 0,
        // Where no link is followed, the path itself has every `..` that will come.
        goes_back: !resolve.contains(ResolveFlags::NO_SYMLINKS) || names(path).any(is_parent),
        mount: match resolve.contains(ResolveFlags::NO_XDEV) {
            true => Some(Mount::of(top)?),
            false => None,
        },
        resolve,
    };
    way.append(path)?;
    way.follow(flags)
}

struct Way<'t> {
    top: BorrowedFd<'t>,
    /// Each was found in the one before it.
    entered: Vec<OwnedFd>,
    /// Still to be looked up, the next one last.
    names: Vec<Vec<u8>>,
    /// A slash follows the last name.
    ends_in_directory: bool,
    links: u32,
    /// Whether a `..` may come, so that more than the last directory is held.
    goes_back: bool,
    /// The only one to be on.
    mount: Option<Mount>,
    resolve: ResolveFlags,
}

impl Way<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.top, AsFd::as_fd)
    }

    /// To be looked up before what is left: a path, or what a link says.
    fn append(&mut self, path: &[u8]) -> Result<(), Errno> {
        if path.starts_with(b"/") {
            if self.resolve.contains(ResolveFlags::BENEATH) {
                return Err(Errno::XDEV);
            }
            self.entered.clear();
        }
        self.ends_in_directory |= self.names.is_empty() && path.ends_with(b"/");
        let before = self.names.len();
        self.names.extend(names(path).map(<[u8]>::to_vec));
        self.names[before..].reverse();
        Ok(())
    }

    fn follow(mut self, flags: OFlags) -> Result<OwnedFd, Errno> {
        while let Some(name) = self.names.pop() {
            if matches!(name.as_slice(), b"." | b"..") {
                // It may be no directory, or closed to us.
                openat(self.here(), ".", LOOK | OFlags::DIRECTORY, Mode::empty())?;
                if is_parent(&name) {
                    self.leave()?;
                }
                continue;
            }
            let found = self.look(&name)?;
            let last = self.names.is_empty();
            let keeps_link = flags.contains(OFlags::NOFOLLOW) && !self.ends_in_directory;
            if found.kind == FileType::Symlink && !(last && keeps_link) {
                let target = self.read_link(&found)?;
                self.append(&target)?;
            } else if last {
                return self.open_last(&name, found, flags);
            } else {
                self.enter(found.fd)?;
            }
        }
        openat(self.here(), ".", flags, Mode::empty())
    }

    /// What has this name, neither followed nor opened.
    fn look(&self, name: &[u8]) -> Result<Found, Errno> {
        let fd = openat(self.here(), name, LOOK, Mode::empty())?;
        let found = Found::new(fd)?;
        match &self.mount {
            Some(mount) if Mount::of(found.fd.as_fd())? != *mount => Err(Errno::XDEV),
            _ => Ok(found),
        }
    }

    fn enter(&mut self, directory: OwnedFd) -> Result<(), Errno> {
        if !self.goes_back {
            self.entered.clear();
        }
        if self.entered.len() == STEPWISE_HELD_DIRECTORIES {
            return Err(Errno::NAMETOOLONG);
        }
        self.entered.push(directory);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Errno> {
        match self.entered.pop() {
            None if self.resolve.contains(ResolveFlags::BENEATH) => Err(Errno::XDEV),
            _ => Ok(()),
        }
    }

    fn read_link(&mut self, link: &Found) -> Result<Vec<u8>, Errno> {
        self.links += 1;
        let refused = self.resolve.contains(ResolveFlags::NO_SYMLINKS) || self.links > MAX_LINKS;
        if refused || fstatfs(&link.fd)?.f_type == PROC_SUPER_MAGIC {
            return Err(Errno::LOOP);
        }
        Ok(readlinkat(&link.fd, "", Vec::new())?.into_bytes())
    }

    /// By name from the held directory, since a descriptor that only looks cannot be opened anew;
    /// and then it must be what was looked at: gVisor of 2024 follows a link in spite of `NOFOLLOW`
    /// where a directory is asked for.
    fn open_last(&self, name: &[u8], found: Found, flags: OFlags) -> Result<OwnedFd, Errno> {
        let is_directory = found.kind == FileType::Directory;
        if !is_directory && (self.ends_in_directory || flags.contains(OFlags::DIRECTORY)) {
            return Err(Errno::NOTDIR);
        }
        if flags.contains(OFlags::PATH) {
            return Ok(found.fd);
        }
        if found.kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        match openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::LOOP) => Err(Errno::AGAIN),
            Err(Errno::NOTDIR) if is_directory => Err(Errno::AGAIN),
            Err(errno) => Err(errno),
            Ok(opened) => match Found::new(opened)? {
                same if same.identity == found.identity => Ok(same.fd),
                _ => Err(Errno::AGAIN),
            },
        }
    }
}

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Found {
    fd: OwnedFd,
    kind: FileType,
    /// Device and inode.
    identity: (u64, u64),
}

impl Found {
    #[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let Stat { st_dev, st_ino, st_mode, .. } = fstat(&fd)?;
        let identity = (st_dev as u64, st_ino as u64);
        Ok(Self { fd, kind: FileType::from_raw_mode(st_mode), identity })
    }
}

#[derive(PartialEq, Eq)]
enum Mount {
    Id(u64),
    /// Where the kernel tells no ids of mounts (gVisor). Another mount of the same file system is
    /// not seen then; nothing in a sandbox may make one.
    Device(u64),
}

impl Mount {
    #[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
    fn of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let wanted = StatxFlags::MNT_ID;
        match statx(fd, "", AtFlags::EMPTY_PATH, wanted) {
            Ok(told) if told.stx_mask & wanted.bits() != 0 => Ok(Self::Id(told.stx_mnt_id)),
            _ => Ok(Self::Device(fstat(fd)?.st_dev as u64)),
        }
    }
}

fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

fn is_parent(name: &[u8]) -> bool {
    name == b".."
}

#[cfg(test)]
#[path = "stepwise_tests.rs"]
mod tests;
