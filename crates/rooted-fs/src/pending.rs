//! Files that appear whole or not at all.
//!
//! Content goes to a temporary file with a random name in the target's own directory and is then
//! renamed over the target, all by descriptor. A symbolic link at the target is replaced itself,
//! never followed: where it points is the sandbox's word, not the client's. Devices, sockets,
//! pipes and directories are never replaced.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, Timespec, Timestamps, fchmod, fstat, futimens, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use sandbank_protocol::{FileKind, FileStat};

use crate::error::At;
use crate::limits::TEMPORARY_NAME_ATTEMPTS;
use crate::opening::create_in;
use crate::renaming::rename_new;
use crate::stat::describe;
use crate::{Expected, RelPath, Root, RootedError};

const DEFAULT_MODE: u32 = 0o644;

/// A file being written. Dropping it without [`PendingFile::commit`] leaves nothing behind.
#[derive(Debug)]
pub struct PendingFile {
    path: RelPath,
    name: OsString,
    parent: OwnedFd,
    file: OwnedFd,
    /// Present until the temporary name is gone or handed on.
    temporary: Option<OsString>,
    mode: u32,
    expected: Expected,
}

impl Root {
    /// Begins a new version of `path`, making missing parents.
    ///
    /// `mode` is cut to the nine permission bits. Without it the mode of the file being replaced
    /// stays, or a new file gets 0644.
    pub fn create(&self, path: &RelPath, mode: Option<u32>) -> Result<PendingFile, RootedError> {
        self.create_if(path, mode, Expected::Anything)
    }

    /// The same in the place of what is expected there, both now and when it is put in place.
    pub fn create_if(
        &self,
        path: &RelPath,
        mode: Option<u32>,
        expected: Expected,
    ) -> Result<PendingFile, RootedError> {
        let (directory, name) = path.split().ok_or(RootedError::IsRoot)?;
        self.require(path, &expected)?;
        let parent = self.make_directories(&directory)?;
        let replaced = replaceable(&parent, name, path)?;
        let mode = mode.or(replaced).unwrap_or(DEFAULT_MODE) & 0o777;
        let (temporary, file) = create_temporary(&parent).at(path)?;
        Ok(PendingFile {
            path: path.clone(),
            name: name.to_owned(),
            parent,
            file,
            temporary: Some(temporary),
            mode,
            expected,
        })
    }
}

impl PendingFile {
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), RootedError> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.file, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).at(&self.path),
            }
        }
        Ok(())
    }

    /// When it was changed last, in seconds since 1970; call it after the last write. A time that
    /// the file system cannot hold is left out.
    pub fn set_modified(&self, seconds: u64) {
        let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(0), tv_nsec: 0 };
        let _ = futimens(&self.file, &Timestamps { last_access: time, last_modification: time });
    }

    /// Puts the file in its place, atomically.
    pub fn commit(mut self) -> Result<FileStat, RootedError> {
        fchmod(&self.file, Mode::from_raw_mode(self.mode)).at(&self.path)?;
        // A special file that came meanwhile must not vanish; a lost race here only replaces
        // what the sandbox itself just put there.
        replaceable(&self.parent, &self.name, &self.path)?;
        self.expected.check(&self.parent, &self.name, &self.path)?;
        let temporary = self.temporary.as_ref().expect("only commit and stage take it");
        let (from, to) = ((&self.parent, temporary.as_os_str()), (&self.parent, &*self.name));
        let placed = match self.expected {
            Expected::Nothing => rename_new(from, to),
            _ => renameat(from.0, from.1, to.0, to.1),
        };
        match placed {
            Err(Errno::EXIST) => return Err(RootedError::Changed(self.path.clone())),
            answer => answer.at(&self.path)?,
        }
        self.temporary = None;
        fstat(&self.file).at(&self.path).map(|stat| describe(&stat))
    }

    /// Finishes the content but leaves it under its temporary name, which the caller now owns.
    pub(crate) fn stage(mut self) -> Result<(RelPath, OsString), RootedError> {
        fchmod(&self.file, Mode::from_raw_mode(self.mode)).at(&self.path)?;
        let temporary = self.temporary.take().expect("only commit and stage take it");
        Ok((self.path.clone(), temporary))
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = unlinkat(&self.parent, temporary, AtFlags::empty());
        }
    }
}

/// The mode of the regular file that would be replaced; none when there is none.
pub(crate) fn replaceable(
    parent: &OwnedFd,
    name: &OsStr,
    path: &RelPath,
) -> Result<Option<u32>, RootedError> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno).at(path),
        Ok(stat) => match describe(&stat) {
            FileStat { kind: FileKind::File, mode, .. } => Ok(Some(mode)),
            FileStat { kind: FileKind::Symlink, .. } => Ok(None),
            FileStat { kind: found, .. } => {
                Err(RootedError::WrongKind { path: path.clone(), found, wanted: FileKind::File })
            }
        },
    }
}

pub(crate) fn create_temporary(parent: &OwnedFd) -> Result<(OsString, OwnedFd), Errno> {
    let mut answer = Err(Errno::EXIST);
    for _ in 0..TEMPORARY_NAME_ATTEMPTS {
        let name = random_name()?;
        answer = create_in(parent, &name).map(|file| (name, file));
        if !matches!(answer, Err(Errno::EXIST | Errno::INTR | Errno::AGAIN)) {
            break;
        }
    }
    answer
}

pub(crate) fn random_name() -> Result<OsString, Errno> {
    let mut random = [0u8; 12];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut name = String::from(".sandbank-");
    for byte in random {
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name.into())
}
