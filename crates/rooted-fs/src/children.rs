//! What a walk needs of a directory: its entries with their kinds, and the way down.
//!
//! A step down is one name, opened from the directory's own descriptor without following a link
//! or entering another mount, so a walk stays in the tree it began in whatever is swapped under it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{
    AtFlags, FileType, OFlags, RawDir, RawDirEntry, ResolveFlags, fstat, readlinkat, statat,
};
use rustix::io::Errno;
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::limits::DIRECTORY_BUFFER_BYTES;
use crate::opening::open_below;
use crate::regular::require_regular;
use crate::stat::describe;
use crate::{Directory, RegularFile, RelPath, RootedError};

impl Directory {
    /// Calls `each` for every entry, in the file system's own order, until it breaks.
    pub fn each(
        &self,
        mut each: impl FnMut(&OsStr, FileKind) -> ControlFlow<()>,
    ) -> Result<(), RootedError> {
        let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BUFFER_BYTES];
        let mut reader = RawDir::new(&self.fd, &mut buffer);
        while let Some(entry) = reader.next() {
            if self.tell(entry, &mut each)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The same for some entries, from where the call before it stopped; whether there may be more.
    pub fn each_of_some(
        &self,
        mut each: impl FnMut(&OsStr, FileKind),
    ) -> Result<bool, RootedError> {
        let mut buffer = [MaybeUninit::uninit(); DIRECTORY_BUFFER_BYTES];
        let mut reader = RawDir::new(&self.fd, &mut buffer);
        while let Some(entry) = reader.next() {
            let _ = self.tell(entry, &mut |name: &OsStr, kind| {
                each(name, kind);
                ControlFlow::Continue(())
            })?;
            if reader.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tell(
        &self,
        entry: Result<RawDirEntry<'_>, Errno>,
        each: &mut impl FnMut(&OsStr, FileKind) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RootedError> {
        let entry = match entry {
            Err(Errno::INTR) => return Ok(ControlFlow::Continue(())),
            entry => entry.at(&self.path)?,
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if matches!(name.as_bytes(), b"." | b"..") {
            return Ok(ControlFlow::Continue(()));
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            FileType::Unknown => match self.stat(name)? {
                Some(stat) => stat.kind,
                None => return Ok(ControlFlow::Continue(())),
            },
            _ => FileKind::Other,
        };
        Ok(each(name, kind))
    }

    /// Of the entry itself, links not followed; none when it is gone by now.
    pub fn stat(&self, name: &OsStr) -> Result<Option<FileStat>, RootedError> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(describe(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).at(&self.path.join(name)),
        }
    }

    /// Where a symbolic link points; none when it is none by now.
    pub fn read_link(&self, name: &OsStr) -> Result<Option<OsString>, RootedError> {
        match readlinkat(&self.fd, name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
            Err(Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno).at(&self.path.join(name)),
        }
    }

    /// A directory in this one.
    pub fn open_directory(&self, name: &OsStr) -> Result<Directory, RootedError> {
        let path = self.path.join(name);
        let fd = self.open_child(name, OFlags::RDONLY | OFlags::DIRECTORY).at(&path)?;
        Ok(Directory { fd, path })
    }

    /// A directory anywhere below this one, on a way without links and other mounts.
    pub fn open_below(&self, path: &RelPath) -> Result<Directory, RootedError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let fd = open_below(&self.fd, path.as_bytes(), flags, resolve).at(path)?;
        Ok(Directory { fd, path: path.clone() })
    }

    /// A regular file in this one; look at its kind first, for merely opening a pipe wakes the
    /// process at its other end.
    pub fn open_file(&self, name: &OsStr) -> Result<RegularFile, RootedError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self.open_child(name, flags).at(&path)?;
        let stat = require_regular(describe(&fstat(&fd).at(&path)?), &path)?;
        Ok(RegularFile { fd, path, stat })
    }

    fn open_child(&self, name: &OsStr, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        open_below(&self.fd, name.as_bytes(), flags | OFlags::NOFOLLOW, resolve)
    }
}

/// For what runs in it, or watches it.
impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl RegularFile {
    /// For readers that want a file of the standard library.
    pub fn into_file(self) -> File {
        self.fd.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Root;

    #[test]
    fn entries_have_kinds_and_only_real_directories_and_files_are_entered() {
        let temporary = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::fs::create_dir(temporary.path().join("dir")).unwrap();
        std::fs::write(temporary.path().join("dir/file"), "content").unwrap();
        std::fs::write(temporary.path().join("file"), "content").unwrap();
        symlink(outside.path(), temporary.path().join("away")).unwrap();
        symlink("file", temporary.path().join("near")).unwrap();
        let root = Root::open(temporary.path(), [""; 0]).unwrap();
        let top = root.open_directory(&RelPath::root()).unwrap();
        let mut found = BTreeMap::new();
        top.each(|name, kind| {
            found.insert(name.to_str().unwrap().to_owned(), kind);
            ControlFlow::Continue(())
        })
        .unwrap();
        let expected = [
            ("away", FileKind::Symlink),
            ("dir", FileKind::Directory),
            ("file", FileKind::File),
            ("near", FileKind::Symlink),
        ];
        assert!(found.iter().map(|(name, kind)| (name.as_str(), *kind)).eq(expected));
        let below = top.open_directory("dir".as_ref()).unwrap();
        let file = below.open_file("file".as_ref()).unwrap();
        assert_eq!(std::io::read_to_string(file.into_file()).unwrap(), "content");
        assert_eq!(top.stat("file".as_ref()).unwrap().unwrap().size, 7);
        assert_eq!(top.stat("nothing".as_ref()).unwrap(), None);
        for refused in ["away", "near", "away/secret", "..", "file"] {
            assert!(top.open_directory(refused.as_ref()).is_err(), "{refused}");
        }
        for refused in ["away", "near", "away/secret", "dir", "../x"] {
            assert!(top.open_file(refused.as_ref()).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_directory_is_read_in_parts_that_make_a_whole() {
        let temporary = tempfile::tempdir().unwrap();
        for number in 0..3_000 {
            std::fs::write(temporary.path().join(format!("file-{number}")), "").unwrap();
        }
        let root = Root::open(temporary.path(), [""; 0]).unwrap();
        let top = root.open_directory(&RelPath::root()).unwrap();
        let (mut found, mut parts) = (std::collections::BTreeSet::new(), 0);
        let mut more = true;
        while more {
            parts += 1;
            more = top.each_of_some(|name, _| assert!(found.insert(name.to_owned()))).unwrap();
        }
        assert_eq!(found.len(), 3_000);
        assert!(parts > 2, "all came at once");
    }
}
