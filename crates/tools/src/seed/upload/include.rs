//! Which files are wanted: any of some globs, whatever the case.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::SeedError;

#[derive(Debug, Clone)]
pub struct Include(GlobSet);

impl Include {
    /// `**/*` is everything; `*` does not go over a slash.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, SeedError> {
        let wrong = |error: globset::Error| SeedError::Include(error.to_string());
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.trim().trim_start_matches("./");
            let glob =
                GlobBuilder::new(pattern).literal_separator(true).case_insensitive(true).build();
            set.add(glob.map_err(wrong)?);
        }
        set.build().map(Self).map_err(wrong)
    }

    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.0.is_match(OsStr::from_bytes(path))
    }
}
