//! Renames that replace nothing. Where the file system has none (volumes of gVisor), a name is
//! taken by what the kernel refuses for a name that exists: a link, or for a directory its making.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, linkat, mkdirat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

/// A name in a directory.
pub(crate) type Place<'a> = (&'a OwnedFd, &'a OsStr);

/// `EEXIST` when the new name is not free.
pub(crate) fn rename_new(from: Place<'_>, to: Place<'_>) -> Result<(), Errno> {
    let rename = |to: Place<'_>| renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE);
    match rename(to) {
        // Also the answer for a directory into itself; but onto its own name, whoever knows the
        // flag says that it exists.
        Err(Errno::INVAL) if rename(from) == Err(Errno::INVAL) => take_name(from, to),
        answer => answer,
    }
}

fn take_name(from: Place<'_>, to: Place<'_>) -> Result<(), Errno> {
    let stat = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        mkdirat(to.0, to.1, Mode::RWXU)?;
        // It replaces the empty one.
        return renameat(from.0, from.1, to.0, to.1).map_err(|errno| {
            let _ = unlinkat(to.0, to.1, AtFlags::REMOVEDIR);
            if errno == Errno::NOTEMPTY { Errno::EXIST } else { errno }
        });
    }
    linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
    unlinkat(from.0, from.1, AtFlags::empty()).inspect_err(|_| {
        let _ = unlinkat(to.0, to.1, AtFlags::empty());
    })
}
