//! The calls that open: `openat2`, and what stands in for it where the kernel has none.
//!
//! Asked anew each time: which of both is used is the kernel's answer and no state of ours.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::limits::RESOLVE_ATTEMPTS;
use crate::stepwise;

/// Opens below a directory descriptor; `flags` never create.
pub(crate) fn open_below(
    dir: impl AsFd,
    path: &[u8],
    flags: OFlags,
    extra: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | extra;
    let flags = flags | OFlags::CLOEXEC;
    patiently(|| match openat2(&dir, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => stepwise::open(dir.as_fd(), path, flags, resolve),
        answer => answer,
    })
}

/// Makes a file of the owner's, for writing, under a name of `dir` that is free.
pub(crate) fn create_in(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat2(&dir, name, flags, mode, resolve) {
        // One name is not resolved, and a link that has it counts as a file that exists.
        Err(Errno::NOSYS) if !name.as_bytes().contains(&b'/') => openat(dir, name, flags, mode),
        answer => answer,
    }
}

/// Opens what is at an absolute path, following links, but none of `/proc` that lead to an open
/// descriptor; `flags` never create. Not for paths of clients, unless whoever opens has no more
/// rights than they have.
pub fn open_absolute(path: impl AsRef<[u8]>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = path.as_ref();
    let (flags, resolve) = (flags | OFlags::CLOEXEC, ResolveFlags::NO_MAGICLINKS);
    patiently(|| match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) if path.starts_with(b"/") => {
            let top = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let top = openat(CWD, "/", top, Mode::empty())?;
            stepwise::open(top.as_fd(), path, flags, resolve)
        }
        answer => answer,
    })
}

/// Until no rename elsewhere disturbs it.
fn patiently(mut open: impl FnMut() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let mut answer = Err(Errno::AGAIN);
    for _ in 0..RESOLVE_ATTEMPTS {
        answer = open();
        if !matches!(answer, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    answer
}
