//! Unpacks one layer into a directory, by descriptor.
//!
//! No name in an archive is ever resolved by path: each parent is opened below the layer's root
//! without following a symbolic link. Devices and pipes are left out, set-id bits and extended
//! attributes are dropped, owners beyond a sandbox's range become `nobody`. The whiteouts of OCI
//! layers become those of overlayfs.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;
use sandbank_engine::EngineError;
use sandbank_image_archive::{Budget, Entry, Kind, Skip, TarStream, bad, damaged};

use super::limits::{DEPTH, HIGHEST_ID, NAME_BYTES, PATH_BYTES};
use crate::storage::remove_tree_at;

const NOBODY: u32 = 65_534;
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
const RESERVED: &[u8] = b".wh..wh.";
pub(super) const OPAQUE_ATTRIBUTE: &CStr = c"trusted.overlay.opaque";

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

fn io(step: &'static str) -> impl FnOnce(Errno) -> EngineError {
    move |errno| EngineError::io(step)(errno.into())
}

/// The names of a path, without empty ones and dots. Leading slashes go, `..` is refused.
fn components(path: &[u8]) -> Result<Vec<&[u8]>, EngineError> {
    let shown = || String::from_utf8_lossy(&path[..path.len().min(200)]).into_owned();
    if path.len() > PATH_BYTES {
        return Err(bad(format!("the name {:?}… is too long", shown())));
    }
    let names: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&&b".."[..]) {
        return Err(bad(format!("the name {:?} leads out of the image", shown())));
    }
    if names.iter().any(|name| name.len() > NAME_BYTES) {
        return Err(bad(format!("the name {:?}… is too long", shown())));
    }
    if names.len() > DEPTH {
        return Err(bad(format!("the name {:?}… is too deep", shown())));
    }
    Ok(names)
}

fn c_name(name: &[u8]) -> Result<CString, EngineError> {
    CString::new(name).map_err(|_| bad("a name has a NUL"))
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_dir(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

pub(super) struct Unpacker<'a> {
    root: OwnedFd,
    budget: &'a mut Budget,
    /// The directory of the last entry: most entries share it with the one before.
    parent: Option<(Vec<u8>, OwnedFd)>,
    entries: u64,
}

impl<'a> Unpacker<'a> {
    /// `root` is an empty directory.
    pub(super) fn new(root: &Path, budget: &'a mut Budget) -> Result<Self, EngineError> {
        let root = rustix::fs::openat(CWD, root, DIRECTORY, Mode::empty())
            .map_err(io("open the layer's directory"))?;
        Ok(Self { root, budget, parent: None, entries: 0 })
    }

    /// Unpacks every entry and says how many there were.
    pub(super) fn unpack<R: Skip>(mut self, stream: &mut TarStream<R>) -> Result<u64, EngineError> {
        while let Some(entry) = stream.next_entry().map_err(damaged)? {
            self.budget.take_entry()?;
            self.budget.promise_bytes(entry.size)?;
            self.entries += 1;
            self.place(&entry, stream)?;
        }
        Ok(self.entries)
    }

    fn place<R: Skip>(
        &mut self,
        entry: &Entry,
        stream: &mut TarStream<R>,
    ) -> Result<(), EngineError> {
        let names = components(&entry.path)?;
        let Some((name, above)) = names.split_last() else {
            // The root itself: ours keeps its owner and mode.
            return Ok(());
        };
        let parent = self.open_parent(above)?;
        let placed = match (name.strip_prefix(WHITEOUT), entry.kind) {
            (Some(_), _) if *name == OPAQUE => make_opaque(&parent),
            (Some(_), _) if name.starts_with(RESERVED) => Ok(()),
            (Some(hidden), Kind::File | Kind::Hardlink) => self.whiteout(&parent, hidden),
            (_, Kind::Special) => Ok(()),
            (_, Kind::Directory) => self.directory(&parent, &c_name(name)?, entry),
            (_, Kind::File) => self.file(&parent, &c_name(name)?, entry, stream),
            (_, Kind::Symlink) => self.symlink(&parent, &c_name(name)?, entry),
            (_, Kind::Hardlink) => self.hardlink(&parent, &c_name(name)?, entry),
        };
        // An entry only ever replaces something below its parent, so the parent is still there.
        self.parent = Some((above.join(&b'/'), parent));
        placed
    }

    /// Opens the directory `above`, making what is missing.
    fn open_parent(&mut self, above: &[&[u8]]) -> Result<OwnedFd, EngineError> {
        let joined = above.join(&b'/');
        if let Some((path, fd)) = self.parent.take()
            && path == joined
        {
            return Ok(fd);
        }
        let relative = if joined.is_empty() { c".".to_owned() } else { c_name(&joined)? };
        match rustix::fs::openat2(&self.root, &relative, DIRECTORY, Mode::empty(), CONFINED) {
            Err(Errno::NOENT) => self.make_parents(above),
            other => other.map_err(|errno| refused(errno, &joined)),
        }
    }

    fn make_parents(&mut self, above: &[&[u8]]) -> Result<OwnedFd, EngineError> {
        let mut here =
            self.root.try_clone().map_err(EngineError::io("open the layer's directory"))?;
        for name in above {
            let name = c_name(name)?;
            match rustix::fs::mkdirat(&here, &name, Mode::from_raw_mode(0o755)) {
                Ok(()) => self.budget.take_entry()?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(io("create a directory of the image")(errno)),
            }
            here = rustix::fs::openat(&here, &name, DIRECTORY, Mode::empty())
                .map_err(|errno| refused(errno, name.to_bytes()))?;
        }
        Ok(here)
    }

    fn directory(&self, parent: &OwnedFd, name: &CStr, entry: &Entry) -> Result<(), EngineError> {
        let existing = stat(parent, name)?;
        let hides_lower = existing.as_ref().is_some_and(is_whiteout);
        if !existing.as_ref().is_some_and(is_dir) {
            replace(parent, name)?;
            rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))
                .map_err(io("create a directory of the image"))?;
        }
        let fd = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
            .map_err(io("open a directory of the image"))?;
        if hides_lower {
            make_opaque(&fd)?;
        }
        // Of the special bits only sticky is harmless.
        finish(&fd, entry, 0o1777)
    }

    fn file<R: Skip>(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        entry: &Entry,
        stream: &mut TarStream<R>,
    ) -> Result<(), EngineError> {
        replace(parent, name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600))
            .map_err(io("create a file of the image"))?;
        let mut file = File::from(fd);
        let mut buffer = [0; 128 << 10];
        loop {
            let read = stream.read_body(&mut buffer).map_err(damaged)?;
            if read == 0 {
                break;
            }
            self.budget.take_bytes(read as u64, &self.root)?;
            file.write_all(&buffer[..read])
                .map_err(EngineError::io("write a file of the image"))?;
        }
        let fd = OwnedFd::from(file);
        finish(&fd, entry, 0o777)?;
        let time = Timespec { tv_sec: i64::try_from(entry.mtime).unwrap_or(0), tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        // A time the file system cannot hold is no reason to refuse the image.
        let _ = rustix::fs::futimens(&fd, &times);
        Ok(())
    }

    fn symlink(&self, parent: &OwnedFd, name: &CStr, entry: &Entry) -> Result<(), EngineError> {
        if entry.link.is_empty() || entry.link.len() > PATH_BYTES {
            return Err(bad("a symbolic link has no usable target"));
        }
        replace(parent, name)?;
        // The target is text to us; only the sandbox's kernel resolves it, inside the sandbox.
        rustix::fs::symlinkat(&c_name(&entry.link)?, parent, name)
            .map_err(io("create a symbolic link of the image"))?;
        let (uid, gid) = owner(entry);
        rustix::fs::chownat(parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(io("set the owner of a symbolic link"))
    }

    fn hardlink(&self, parent: &OwnedFd, name: &CStr, entry: &Entry) -> Result<(), EngineError> {
        let target = components(&entry.link)?;
        let shown = String::from_utf8_lossy(&entry.link).into_owned();
        let Some((target_name, above)) = target.split_last() else {
            return Err(bad("a hard link has no usable target"));
        };
        if components(&entry.path)? == target {
            return Err(bad(format!("{shown:?} is a hard link to itself")));
        }
        let joined = above.join(&b'/');
        let relative = if joined.is_empty() { c".".to_owned() } else { c_name(&joined)? };
        let from = rustix::fs::openat2(&self.root, &relative, DIRECTORY, Mode::empty(), CONFINED)
            .map_err(|errno| refused(errno, &joined))?;
        let target_name = c_name(target_name)?;
        let linkable = stat(&from, &target_name)?.is_some_and(|stat| {
            let kind = FileType::from_raw_mode(stat.st_mode);
            matches!(kind, FileType::RegularFile | FileType::Symlink)
        });
        if !linkable {
            return Err(bad(format!(
                "a hard link leads to {shown:?}, which is no file of its layer"
            )));
        }
        replace(parent, name)?;
        rustix::fs::linkat(&from, &target_name, parent, name, AtFlags::empty()).map_err(|errno| {
            match errno {
                // The target was inside what has just been replaced.
                Errno::NOENT => bad(format!("a hard link to {shown:?} replaces its target")),
                errno => io("create a hard link of the image")(errno),
            }
        })
    }

    /// Hides a name of the layers below. What this layer itself has stays.
    fn whiteout(&self, parent: &OwnedFd, hidden: &[u8]) -> Result<(), EngineError> {
        if matches!(hidden, b"" | b"." | b"..") {
            return Err(bad("a whiteout has no name"));
        }
        let name = c_name(hidden)?;
        match stat(parent, &name)? {
            Some(existing) if is_dir(&existing) => {
                let fd = rustix::fs::openat(parent, &name, DIRECTORY, Mode::empty())
                    .map_err(io("open a directory of the image"))?;
                make_opaque(&fd)
            }
            Some(_) => Ok(()),
            None => rustix::fs::mknodat(
                parent,
                &name,
                FileType::CharacterDevice,
                Mode::empty(),
                rustix::fs::makedev(0, 0),
            )
            .map_err(io("create a whiteout of the image")),
        }
    }
}

/// Clears the place for an entry that cannot be merged with what is there.
fn replace(parent: &OwnedFd, name: &CStr) -> Result<(), EngineError> {
    remove_tree_at(parent.as_fd(), name).map_err(EngineError::io("replace an entry of the image"))
}

fn stat(parent: &OwnedFd, name: &CStr) -> Result<Option<Stat>, EngineError> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(io("look at an entry of the image")(errno)),
    }
}

pub(super) fn make_opaque(dir: impl AsFd) -> Result<(), EngineError> {
    rustix::fs::fsetxattr(dir, OPAQUE_ATTRIBUTE, b"y", rustix::fs::XattrFlags::empty())
        .map_err(io("mark a directory of the image as opaque"))
}

fn owner(entry: &Entry) -> (Option<Uid>, Option<Gid>) {
    let kept = |id: u64| if id <= HIGHEST_ID { id as u32 } else { NOBODY };
    (Some(Uid::from_raw(kept(entry.uid))), Some(Gid::from_raw(kept(entry.gid))))
}

/// Owner first: changing it clears bits that `mask` may keep.
fn finish(fd: &OwnedFd, entry: &Entry, mask: u32) -> Result<(), EngineError> {
    let (uid, gid) = owner(entry);
    rustix::fs::fchown(fd, uid, gid).map_err(io("set the owner of an entry"))?;
    rustix::fs::fchmod(fd, Mode::from_raw_mode(entry.mode & mask))
        .map_err(io("set the mode of an entry"))
}

/// The archive's fault when a parent is a link or no directory, else the machine's.
fn refused(errno: Errno, path: &[u8]) -> EngineError {
    let shown = String::from_utf8_lossy(&path[..path.len().min(200)]).into_owned();
    match errno {
        Errno::LOOP | Errno::XDEV => {
            bad(format!("an entry leads through the symbolic link {shown:?}"))
        }
        Errno::NOTDIR => bad(format!("an entry leads through {shown:?}, which is no directory")),
        Errno::NOENT => bad(format!("a hard link leads to {shown:?}, which is not in its layer")),
        errno => io("open a directory of the image")(errno),
    }
}
