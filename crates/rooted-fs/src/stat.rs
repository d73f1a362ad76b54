//! What is at a path.

use rustix::fs::{FileType, OFlags, Stat, fstat};
use sandbank_protocol::{FileKind, FileStat, FileTag};

use crate::error::At;
use crate::{RelPath, Root, RootedError};

/// What to do when the last name of a path is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Go on to its target, which must be below the root.
    Follow,
    /// Look at the link itself.
    Keep,
}

impl Root {
    pub fn stat(&self, path: &RelPath, links: Links) -> Result<FileStat, RootedError> {
        let file = self.resolve(path, OFlags::PATH, links)?;
        fstat(&file).at(path).map(|stat| describe(&stat))
    }
}

#[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
pub(crate) fn describe(stat: &Stat) -> FileStat {
    FileStat {
        kind: kind(stat),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified_ms: (stat.st_mtime as i64)
            .saturating_mul(1000)
            .saturating_add(stat.st_mtime_nsec as i64 / 1_000_000),
        tag: Some(tag(stat)),
    }
}

#[allow(clippy::unnecessary_cast, reason = "field types differ between architectures")]
fn tag(stat: &Stat) -> FileTag {
    let nanoseconds =
        |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileTag {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

pub(crate) fn kind(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}
