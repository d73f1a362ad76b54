//! The directory everything stays below.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use crate::error::At;
use crate::{InvalidPath, RelPath, RootNames, RootedError};

/// A directory opened once; later changes of its own path do not matter.
#[derive(Debug)]
pub struct Root {
    pub(crate) dir: OwnedFd,
    pub(crate) names: RootNames,
}

impl Root {
    /// `path` is trusted: it comes from the configuration, never from a client.
    pub fn open<N: AsRef<OsStr>>(
        path: impl AsRef<Path>,
        aliases: impl IntoIterator<Item = N>,
    ) -> Result<Self, RootedError> {
        let path = path.as_ref();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, path, flags, Mode::empty()).at(&RelPath::root())?;
        Ok(Self { dir, names: RootNames::new(path, aliases) })
    }

    /// Validates a client's path. Nothing is looked up.
    pub fn parse(&self, path: impl AsRef<[u8]>) -> Result<RelPath, InvalidPath> {
        RelPath::parse(path, &self.names)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}
