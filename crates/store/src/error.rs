//! Why the store could not do what was asked, by what a person can do about it.

use std::path::{Path, PathBuf};

use sqlx::error::DatabaseError;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database {} is damaged: {reason}", .path.display())]
    Corrupt { path: PathBuf, reason: String },
    #[error(
        "the database {} has schema {found}, this version knows up to {supported}",
        .path.display()
    )]
    Newer { path: PathBuf, found: i64, supported: i64 },
    #[error("no space left for the database {}", .path.display())]
    Full { path: PathBuf },
    #[error("the database {} cannot be written", .path.display())]
    ReadOnly { path: PathBuf },
    #[error("the database {} is in use by another process", .path.display())]
    Locked { path: PathBuf },
    #[error("failed to use the database {}: {reason}", .path.display())]
    Io { path: PathBuf, reason: String },
    /// The row would contradict one that is there.
    #[error("{what} exists already")]
    Exists { what: String },
    /// A value in the database is none that this version writes.
    #[error("the {column} of {row} in the database makes no sense: {reason}")]
    BadValue { row: String, column: &'static str, reason: String },
}

impl StoreError {
    /// Whether the same call may succeed later: the file system or another process is in the way,
    /// not what is in the database.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Locked { .. } | Self::Full { .. } | Self::ReadOnly { .. } | Self::Io { .. }
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Corrupt { path, .. } => format!(
                "stop the daemon, move {} away and restore a backup of it, or start without one",
                path.display()
            ),
            Self::Newer { .. } => {
                "use the version of sandbank that wrote it, or a later one".into()
            }
            Self::Full { path } => {
                format!("free some space on the file system of {}", path.display())
            }
            Self::ReadOnly { path } => {
                format!("make {} and its directory writable for this user", path.display())
            }
            Self::Locked { .. } => "stop the other process, or try again later".into(),
            Self::Io { .. } | Self::Exists { .. } | Self::BadValue { .. } => return None,
        })
    }

    pub(crate) fn from_io(path: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full { path },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly { path },
            _ => Self::Io { path, reason: error.to_string() },
        }
    }

    pub(crate) fn from_sqlx(path: &Path, error: sqlx::Error) -> Self {
        let path = path.to_owned();
        match error {
            sqlx::Error::Database(error) => Self::from_sqlite(path, &*error),
            sqlx::Error::PoolTimedOut => Self::Locked { path },
            sqlx::Error::Io(error) => Self::from_io(&path, &error),
            other => Self::Io { path, reason: other.to_string() },
        }
    }

    fn from_sqlite(path: PathBuf, error: &dyn DatabaseError) -> Self {
        let extended: i32 = error.code().and_then(|code| code.parse().ok()).unwrap_or(0);
        let reason = error.message().to_owned();
        match extended & 0xff {
            SQLITE_BUSY | SQLITE_LOCKED | SQLITE_PROTOCOL => Self::Locked { path },
            SQLITE_READONLY | SQLITE_PERM => Self::ReadOnly { path },
            SQLITE_CORRUPT | SQLITE_NOTADB => Self::Corrupt { path, reason },
            SQLITE_FULL => Self::Full { path },
            // Making or growing a side file fails with one of these, whatever the reason.
            SQLITE_IOERR | SQLITE_CANTOPEN if no_space_left(&path) => Self::Full { path },
            _ => Self::Io { path, reason },
        }
    }
}

const SQLITE_PERM: i32 = 3;
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_PROTOCOL: i32 = 15;
const SQLITE_NOTADB: i32 = 26;

/// Less than this free, and an I/O error is taken for a lack of space: one shared-memory region.
const SHARED_MEMORY_REGION: u64 = 32 * 1024;

fn no_space_left(path: &Path) -> bool {
    let directory = path.parent().unwrap_or(Path::new("."));
    // Some file systems do not count inodes and say zero of zero.
    rustix::fs::statvfs(directory).is_ok_and(|fs| {
        fs.f_bavail.saturating_mul(fs.f_frsize) < SHARED_MEMORY_REGION
            || (fs.f_files > 0 && fs.f_favail == 0)
    })
}
