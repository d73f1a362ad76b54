//! Directories of a walk: such as wait, such as are open, and what is in them.

use std::ffi::OsStr;
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use sandbank_protocol::FileKind;
use sandbank_rooted_fs::{Directory, RootedError};

use super::rules::{Present, Rules};
use crate::limits::MAX_SEARCH_LISTING_BYTES;

/// To be opened by its path from where the search began, through no link and into no other mount.
/// So a tree of any depth needs no descriptors while it waits.
#[derive(Debug)]
pub(super) struct PendingDirectory {
    /// From where the search began; empty there.
    pub(super) path: Vec<u8>,
    /// Of what is in it; 1 where the search began.
    pub(super) depth: u64,
    /// Of the directories above it.
    pub(super) rules: Option<Arc<Rules>>,
}

#[derive(Debug)]
pub(super) struct OpenDirectory {
    pub(super) directory: Directory,
    /// From where the search began, with a slash behind it unless it is empty.
    pub(super) path: Vec<u8>,
    pub(super) depth: u64,
    pub(super) rules: Option<Arc<Rules>>,
}

impl OpenDirectory {
    /// The path, from where the search began, of a directory in this one.
    pub(super) fn below(&self, name: &[u8]) -> PendingDirectory {
        let path = [&self.path, name].concat();
        PendingDirectory { path, depth: self.depth + 1, rules: self.rules.clone() }
    }
}

/// The entries of one directory, in memory that is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: Vec<u8>,
    entries: Vec<ListedEntry>,
    pub(super) present: Present,
}

#[derive(Debug, Clone)]
struct ListedEntry {
    name: Range<usize>,
    kind: FileKind,
}

/// A directory has more than may be looked at.
#[derive(Debug)]
pub(super) struct Cut;

impl Listing {
    /// Reads up to `limit` entries.
    pub(super) fn read(
        &mut self,
        directory: &Directory,
        limit: u64,
    ) -> Result<Result<(), Cut>, RootedError> {
        self.names.clear();
        self.entries.clear();
        self.present = Present::default();
        let mut answer = Ok(());
        directory.each(|name, kind| {
            let full = self.names.len() > MAX_SEARCH_LISTING_BYTES;
            if full || self.entries.len() as u64 >= limit {
                answer = Err(Cut);
                return ControlFlow::Break(());
            }
            let name = name.as_bytes();
            let start = self.names.len();
            self.names.extend_from_slice(name);
            if name.starts_with(b".") {
                self.present.see(name);
            }
            self.entries.push(ListedEntry { name: start..self.names.len(), kind });
            ControlFlow::Continue(())
        })?;
        Ok(answer)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What it takes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.names.len() + self.entries.len() * size_of::<ListedEntry>()
    }

    pub(super) fn get(&self, index: usize) -> Option<(&OsStr, FileKind)> {
        let entry = self.entries.get(index)?;
        Some((OsStr::from_bytes(&self.names[entry.name.clone()]), entry.kind))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&OsStr, FileKind)> {
        let entry =
            |entry: &ListedEntry| (OsStr::from_bytes(&self.names[entry.name.clone()]), entry.kind);
        self.entries.iter().map(entry)
    }

    pub(super) fn sort(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|a, b| names[a.name.clone()].cmp(&names[b.name.clone()]));
    }
}
