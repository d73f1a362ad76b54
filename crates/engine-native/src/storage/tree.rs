//! Walking trees that a sandbox filled: by descriptor, without recursion, with bounded depth.
//!
//! A workspace may nest directories deeper than any stack or descriptor table. Nothing here
//! follows a symbolic link or builds a path from names found on the way.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::limits::{USAGE_ENTRIES, WALK_DEPTH};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Names read from one directory before they are worked off.
const BATCH: usize = 1024;

struct Level {
    fd: OwnedFd,
    dev: u64,
    /// Its name in the level above.
    name: CString,
    /// Directories found here and not yet entered.
    waiting: Vec<CString>,
}

fn open_level(parent: impl AsFd, name: CString) -> Result<Level, Errno> {
    let fd = rustix::fs::openat(parent, name.as_c_str(), DIRECTORY, Mode::empty())?;
    let dev = rustix::fs::fstat(&fd)?.st_dev;
    Ok(Level { fd, dev, name, waiting: Vec::new() })
}

/// Up to [`BATCH`] entries; an unknown type is asked for.
fn read_batch(fd: &OwnedFd) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut batch = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        batch.push((name.to_owned(), kind));
        if batch.len() == BATCH {
            break;
        }
    }
    Ok(batch)
}

/// Removes a file or a whole tree. Nothing there is fine.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    remove_tree_at(CWD, &CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// Like [`remove_tree`], for `name` in an open directory.
///
/// Below [`WALK_DEPTH`] levels a directory is renamed up to the highest level of its file system
/// and removed from there, so depth costs neither stack nor descriptors.
pub(crate) fn remove_tree_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let root = match open_level(dir, name.to_owned()) {
        Ok(level) => level,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return ignore_missing(rustix::fs::unlinkat(dir, name, AtFlags::empty()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut stack = vec![root];
    let mut hoisted = 0u64;
    while let Some(level) = stack.last_mut() {
        if let Some(name) = level.waiting.pop() {
            let next = match open_level(&level.fd, name) {
                Ok(next) => next,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            if stack.len() >= WALK_DEPTH && hoist(&mut stack, &next, &mut hoisted)? {
                continue;
            }
            stack.push(next);
            continue;
        }
        let batch = read_batch(&level.fd)?;
        if batch.is_empty() {
            let done = stack.pop().expect("the loop condition saw it");
            let parent = stack.last().map_or(dir, |level| level.fd.as_fd());
            ignore_missing(rustix::fs::unlinkat(parent, &done.name, AtFlags::REMOVEDIR))?;
            continue;
        }
        for (name, kind) in batch {
            if kind == FileType::Directory {
                level.waiting.push(name);
            } else {
                ignore_missing(rustix::fs::unlinkat(&level.fd, &name, AtFlags::empty()))?;
            }
        }
    }
    Ok(())
}

fn ignore_missing(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(error) if error != Errno::NOENT => Err(error.into()),
        _ => Ok(()),
    }
}

/// Renames `deep`, a child of the last level, to the highest level of the same file system. False
/// when it is already there, which happens below the root of a nested file system only.
fn hoist(stack: &mut [Level], deep: &Level, hoisted: &mut u64) -> io::Result<bool> {
    let last = stack.len() - 1;
    let top = stack.iter().position(|level| level.dev == deep.dev).unwrap_or(last);
    if top == last {
        return Ok(false);
    }
    loop {
        *hoisted += 1;
        let name = CString::new(format!(".hoisted-{hoisted}")).expect("it has no NUL");
        // NOREPLACE: the tree may hold that very name.
        match rustix::fs::renameat_with(
            &stack[last].fd,
            &deep.name,
            &stack[top].fd,
            &name,
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            Ok(()) => {
                stack[top].waiting.push(name);
                return Ok(true);
            }
            Err(Errno::EXIST) => continue,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Bytes of the blocks below `path`; a lower bound for trees beyond the limits.
pub(crate) fn disk_usage(path: &Path) -> io::Result<u64> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    let root = open_level(CWD, name)?;
    let mut bytes = 512 * rustix::fs::fstat(&root.fd)?.st_blocks as u64;
    let mut stack = vec![root];
    let mut seen = 0u64;
    count(&stack[0].fd, &mut bytes, &mut seen).map(|dirs| stack[0].waiting = dirs)?;
    while let Some(level) = stack.last_mut() {
        let Some(name) = level.waiting.pop() else {
            stack.pop();
            continue;
        };
        if stack.len() >= WALK_DEPTH || seen >= USAGE_ENTRIES {
            continue;
        }
        let above = stack.last().expect("the loop condition saw it");
        // The workload may remove it while we look.
        let Ok(mut next) = open_level(&above.fd, name) else { continue };
        next.waiting = count(&next.fd, &mut bytes, &mut seen)?;
        stack.push(next);
    }
    Ok(bytes)
}

/// Adds one directory's entries and gives its subdirectories.
fn count(fd: &OwnedFd, bytes: &mut u64, seen: &mut u64) -> io::Result<Vec<CString>> {
    let mut dirs = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *seen += 1;
        if *seen > USAGE_ENTRIES {
            break;
        }
        let Ok(stat) = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        *bytes += 512 * stat.st_blocks as u64;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            dirs.push(name.to_owned());
        }
    }
    Ok(dirs)
}
