//! Why a file operation failed: the kernel's numbers as things a caller can act on.

use rustix::io::Errno;
use sandbank_protocol::FileKind;

use crate::RelPath;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootedError {
    #[error("{0} does not exist")]
    NotFound(RelPath),
    #[error("{0} exists already")]
    AlreadyExists(RelPath),
    /// A link on the way leads outside, is magic (`/proc`), or goes in circles.
    #[error("{0} leads out of the root directory")]
    Escapes(RelPath),
    #[error("{path} is a {}, not a {}", word(*.found), word(*.wanted))]
    WrongKind { path: RelPath, found: FileKind, wanted: FileKind },
    #[error("something on the way to {0} is not a directory")]
    NotADirectory(RelPath),
    #[error("{0} is not empty")]
    NotEmpty(RelPath),
    #[error("the root directory itself cannot be replaced, moved or removed")]
    IsRoot,
    #[error("{0} cannot be moved or copied into itself")]
    IntoItself(RelPath),
    #[error("permission denied for {0}")]
    PermissionDenied(RelPath),
    #[error("the file system is read-only at {0}")]
    ReadOnly(RelPath),
    #[error("no space or quota is left for {0}")]
    StorageFull(RelPath),
    #[error("{0} would become larger than a file may be")]
    FileTooLarge(RelPath),
    #[error("the path {0} is too long for the kernel")]
    PathTooLong(RelPath),
    /// Somebody kept changing the tree during the operation; trying again may help.
    #[error("{0} kept changing during the operation")]
    Contended(RelPath),
    /// A condition of the request does not hold.
    #[error("{0} is not the version that was expected")]
    Changed(RelPath),
    /// More entries than an operation takes, or than can be remembered.
    #[error("there is too much in {0}")]
    TooWide(RelPath),
    /// More directories within each other than an operation goes down.
    #[error("directories are too deep within each other at {0}")]
    TooDeep(RelPath),
    /// Nobody waits for the result any more.
    #[error("the work on {0} was given up")]
    Abandoned(RelPath),
    #[error("too many files are open to reach {0}")]
    TooManyOpenFiles(RelPath),
    #[error("the kernel answered {source} for {path}")]
    Kernel { path: RelPath, source: Errno },
}

impl RootedError {
    /// What it is about; none when it is the root.
    pub fn path(&self) -> Option<&RelPath> {
        match self {
            Self::IsRoot => None,
            Self::NotFound(path)
            | Self::AlreadyExists(path)
            | Self::Escapes(path)
            | Self::WrongKind { path, .. }
            | Self::NotADirectory(path)
            | Self::NotEmpty(path)
            | Self::IntoItself(path)
            | Self::PermissionDenied(path)
            | Self::ReadOnly(path)
            | Self::StorageFull(path)
            | Self::FileTooLarge(path)
            | Self::PathTooLong(path)
            | Self::Contended(path)
            | Self::Changed(path)
            | Self::TooWide(path)
            | Self::TooDeep(path)
            | Self::Abandoned(path)
            | Self::TooManyOpenFiles(path)
            | Self::Kernel { path, .. } => Some(path),
        }
    }

    pub(crate) fn from_errno(errno: Errno, path: &RelPath) -> Self {
        let path = path.clone();
        match errno {
            Errno::NOENT => Self::NotFound(path),
            Errno::EXIST => Self::AlreadyExists(path),
            Errno::XDEV | Errno::LOOP => Self::Escapes(path),
            Errno::NOTDIR => Self::NotADirectory(path),
            Errno::ISDIR => {
                Self::WrongKind { path, found: FileKind::Directory, wanted: FileKind::File }
            }
            // A socket, or a pipe without a reader, opened for writing.
            Errno::NXIO => Self::WrongKind { path, found: FileKind::Other, wanted: FileKind::File },
            Errno::NOTEMPTY => Self::NotEmpty(path),
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied(path),
            Errno::ROFS => Self::ReadOnly(path),
            Errno::NOSPC | Errno::DQUOT => Self::StorageFull(path),
            Errno::FBIG => Self::FileTooLarge(path),
            Errno::NAMETOOLONG => Self::PathTooLong(path),
            Errno::AGAIN => Self::Contended(path),
            Errno::MFILE | Errno::NFILE => Self::TooManyOpenFiles(path),
            source => Self::Kernel { path, source },
        }
    }
}

/// Attaches the path to a kernel answer.
pub(crate) trait At<T> {
    fn at(self, path: &RelPath) -> Result<T, RootedError>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, path: &RelPath) -> Result<T, RootedError> {
        self.map_err(|errno| RootedError::from_errno(errno, path))
    }
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "regular file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symbolic link",
        FileKind::Other => "device, socket or pipe",
    }
}
