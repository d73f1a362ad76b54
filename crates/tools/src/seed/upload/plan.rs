//! What will be uploaded, before anything is: so that too much is found out in time.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use sandbank_rooted_fs::{Directory, FileKind, Order, RelPath, RootedError, Visit, Visitor, walk};

use super::super::limits::{
    MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_PATH_BYTES, MAX_TOTAL_BYTES,
};
use super::tracked::Tracked;
use super::{Include, SeedError, Skipped, secrets};

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In order of their directories.
    pub(super) files: Vec<RelPath>,
    /// As they are now.
    pub(super) bytes: u64,
    pub(super) skipped: Skipped,
}

impl Plan {
    pub(super) fn make(
        top: Directory,
        tracked: Option<&Tracked>,
        include: &Include,
    ) -> Result<Self, SeedError> {
        let mut planner =
            Planner { plan: Self::default(), tracked, include, entries: 0, error: None };
        walk(top, Order::Sorted, &mut planner);
        match planner.error {
            Some(error) => Err(error),
            None => Ok(planner.plan),
        }
    }
}

struct Planner<'p> {
    plan: Plan,
    tracked: Option<&'p Tracked>,
    include: &'p Include,
    entries: u64,
    error: Option<SeedError>,
}

impl Visitor for Planner<'_> {
    fn entry(&mut self, dir: &Directory, _depth: usize, name: &OsStr, kind: FileKind) -> Visit {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return self.stop(SeedError::TooManyEntries);
        }
        let path = dir.path().join(name);
        let skipped = &mut self.plan.skipped;
        let count = match kind {
            FileKind::Directory if secrets::is_left_out(name.as_bytes()) => {
                &mut skipped.directories
            }
            FileKind::Directory
                if secrets::is_secret_directory(path.as_bytes(), name.as_bytes()) =>
            {
                &mut skipped.secrets
            }
            FileKind::Directory => return Visit::Go,
            FileKind::Symlink => &mut skipped.links,
            FileKind::File => return self.file(dir, path, name),
            _ => &mut skipped.special,
        };
        *count += 1;
        Visit::Skip
    }

    fn failed(&mut self, error: RootedError) -> Visit {
        match error {
            RootedError::NotFound(_) => Visit::Go,
            RootedError::TooWide(_) => self.stop(SeedError::TooManyEntries),
            error => {
                tracing::info!(%error, "a directory is not uploaded");
                self.plan.skipped.unreadable += 1;
                Visit::Go
            }
        }
    }
}

impl Planner<'_> {
    fn stop(&mut self, error: SeedError) -> Visit {
        self.error = Some(error);
        Visit::Stop
    }

    fn file(&mut self, dir: &Directory, path: RelPath, name: &OsStr) -> Visit {
        let bytes = path.as_bytes();
        let skipped = &mut self.plan.skipped;
        let count = if secrets::is_secret_file(bytes, name.as_bytes()) {
            Some(&mut skipped.secrets)
        } else if self.tracked.is_some_and(|tracked| !tracked.contains(bytes)) {
            Some(&mut skipped.untracked)
        } else if !self.include.has(bytes) {
            Some(&mut skipped.not_included)
        } else if bytes.len() > MAX_PATH_BYTES {
            Some(&mut skipped.long_paths)
        } else {
            None
        };
        if let Some(count) = count {
            *count += 1;
            return Visit::Go;
        }
        let size = match dir.stat(name) {
            Ok(Some(stat)) => stat.size,
            Ok(None) => return Visit::Go,
            Err(_) => {
                skipped.unreadable += 1;
                return Visit::Go;
            }
        };
        self.plan.bytes += size;
        if self.plan.files.len() >= MAX_FILES {
            return self.stop(SeedError::TooManyFiles);
        }
        if size > MAX_FILE_BYTES {
            return self.stop(SeedError::LargeFile { path: path.to_string() });
        }
        if self.plan.bytes > MAX_TOTAL_BYTES {
            return self.stop(SeedError::TooLarge);
        }
        self.plan.files.push(path);
        Visit::Go
    }
}
