//! The way through the tree, shared by the threads of one search.
//!
//! Nothing here is a path that the kernel resolves from anywhere but the directory where the search
//! began, links and other mounts are not entered, and only regular files are opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use sandbank_protocol::{FileKind, SearchCut};
use sandbank_rooted_fs::Directory;

use super::bounds::Bounds;
use super::directory::{Listing, OpenDirectory, PendingDirectory};
use super::filter::Filter;
use super::queue::{Queue, Work};
use super::rules::{Budget, Rules};
use crate::limits::{FILES_PER_LOOK, MAX_SEARCH_THREADS, OFFLOAD_STACK_BYTES};

/// What a search does on its way; each thread has one.
pub(super) trait Visit {
    /// What a thread has counted at its end.
    type Counts: Send;

    fn counts(self) -> Self::Counts;

    /// An entry that is to be looked at, by its path below the workspace; whether a regular file's
    /// content is wanted.
    fn entry(&mut self, path: &[u8], kind: FileKind) -> bool;

    /// A regular file whose content is wanted.
    fn file(&mut self, directory: &Directory, name: &OsStr, path: &[u8]);

    /// A directory that could not be read.
    fn unreadable(&mut self);

    /// Comes now and then, to look whether anybody still reads and to send what waits.
    fn look(&mut self);
}

pub(super) struct Walk {
    /// Where the search began.
    pub(super) top: Directory,
    /// Its path below the workspace, with a slash behind it unless it is empty.
    pub(super) prefix: Vec<u8>,
    /// Of the directories above it.
    pub(super) rules: Option<Arc<Rules>>,
    pub(super) filter: Filter,
    pub(super) bounds: Bounds,
    pub(super) max_depth: u64,
    pub(super) budget: Arc<Budget>,
}

impl Walk {
    pub(super) fn first(&self) -> PendingDirectory {
        PendingDirectory { path: Vec::new(), depth: 1, rules: self.rules.clone() }
    }

    /// With as many threads as there are processors, or as can be had.
    pub(super) fn run<V: Visit>(&self, visitor: impl Fn() -> V + Sync) -> Vec<V::Counts> {
        let queue = Queue::new(self.first());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            let mut worker = Worker::new(self, visitor());
            worker.parallel(&queue);
            worker.visit.counts()
        };
        std::thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..threads.min(MAX_SEARCH_THREADS) {
                let builder = std::thread::Builder::new().name("search".into());
                match builder.stack_size(OFFLOAD_STACK_BYTES).spawn_scoped(scope, work) {
                    Ok(thread) => others.push(thread),
                    Err(_) => break,
                }
            }
            let mut counts = vec![work()];
            counts.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
            counts
        })
    }
}

pub(super) struct Worker<'a, V> {
    pub(super) walk: &'a Walk,
    pub(super) visit: V,
    listing: Listing,
    /// Of the entry in hand, below the workspace.
    path: Vec<u8>,
    files: u32,
    entries: u32,
}

impl<'a, V: Visit> Worker<'a, V> {
    pub(super) fn new(walk: &'a Walk, visit: V) -> Self {
        Self { walk, visit, listing: Listing::default(), path: Vec::new(), files: 0, entries: 0 }
    }

    fn parallel(&mut self, queue: &Queue) {
        let mut asks_again = false;
        while let Some(work) = queue.next(asks_again) {
            asks_again = true;
            // What waits is let go without being looked at once the search is over.
            if self.walk.bounds.is_over() {
                continue;
            }
            self.visit.look();
            match work {
                Work::Directory(pending) => self.directory(pending, queue),
                Work::Files(directory, names) => self.files(&directory, names, queue),
            }
        }
    }

    fn directory(&mut self, pending: PendingDirectory, queue: &Queue) {
        let mut listing = std::mem::take(&mut self.listing);
        if let Some(directory) = self.open(pending, &mut listing) {
            let mut files = Vec::new();
            let mut directories = Vec::new();
            for (name, kind) in listing.iter() {
                if self.walk.bounds.is_over() {
                    break;
                }
                let wanted = self.entry(&directory, name, kind);
                match kind {
                    FileKind::Directory if wanted => {
                        directories.push(Work::Directory(directory.below(name.as_bytes())));
                    }
                    FileKind::File if wanted => {
                        files.extend_from_slice(name.as_bytes());
                        files.push(0);
                    }
                    _ => {}
                }
            }
            if !directories.is_empty() && queue.add(directories).is_err() {
                self.walk.bounds.cut(SearchCut::Nodes);
            }
            if !files.is_empty() {
                self.files(&Arc::new(directory), files, queue);
            }
        }
        self.listing = listing;
    }

    fn files(&mut self, directory: &Arc<OpenDirectory>, mut names: Vec<u8>, queue: &Queue) {
        let mut at = 0;
        while let Some(length) = names[at..].iter().position(|byte| *byte == 0) {
            let end = at + length;
            if queue.is_hungry()
                && let Some(given) = second_half(&mut names, end + 1)
            {
                let _ = queue.add([Work::Files(directory.clone(), given)]);
            }
            let name = OsStr::from_bytes(&names[at..end]);
            if !self.file(directory, name) {
                return;
            }
            at = end + 1;
        }
    }

    /// Opens and lists a directory; none when it cannot be read.
    pub(super) fn open(
        &mut self,
        pending: PendingDirectory,
        listing: &mut Listing,
    ) -> Option<OpenDirectory> {
        let PendingDirectory { mut path, depth, rules } = pending;
        let name: &[u8] = if path.is_empty() { b"." } else { &path };
        let Ok(directory) = self.walk.top.open_directory(OsStr::from_bytes(name)) else {
            self.visit.unreadable();
            return None;
        };
        match listing.read(&directory, self.walk.bounds.nodes_left()) {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.walk.bounds.cut(SearchCut::Nodes),
            Err(_) => {
                self.visit.unreadable();
                return None;
            }
        }
        self.walk.bounds.count_nodes(listing.len() as u64);
        if !path.is_empty() {
            path.push(b'/');
        }
        let rules = if self.walk.filter.ignored {
            None
        } else {
            let prefix = self.walk.prefix.len() + path.len();
            let present = listing.present;
            Rules::below(rules.as_ref(), &directory, present, prefix, &self.walk.budget)
        };
        Some(OpenDirectory { directory, path, depth, rules })
    }

    /// Whether to go into a directory, or to read a file.
    pub(super) fn entry(
        &mut self,
        directory: &OpenDirectory,
        name: &OsStr,
        kind: FileKind,
    ) -> bool {
        self.entries = self.entries.wrapping_add(1);
        if self.entries.is_multiple_of(FILES_PER_LOOK) {
            self.visit.look();
        }
        self.set_path(directory, name);
        let is_dir = kind == FileKind::Directory;
        if !self.walk.filter.passes(directory.rules.as_deref(), &self.path, is_dir) {
            return false;
        }
        self.visit.entry(&self.path, kind) || (is_dir && directory.depth < self.walk.max_depth)
    }

    /// Whether to go on.
    pub(super) fn file(&mut self, directory: &OpenDirectory, name: &OsStr) -> bool {
        self.files += 1;
        if self.files.is_multiple_of(FILES_PER_LOOK) && !self.walk.bounds.is_over() {
            self.visit.look();
        }
        if self.walk.bounds.is_stopped() {
            return false;
        }
        self.set_path(directory, name);
        self.visit.file(&directory.directory, name, &self.path);
        true
    }

    fn set_path(&mut self, directory: &OpenDirectory, name: &OsStr) {
        self.path.clear();
        self.path.extend_from_slice(&self.walk.prefix);
        self.path.extend_from_slice(&directory.path);
        self.path.extend_from_slice(name.as_bytes());
    }
}

/// Takes about half of the names from `from` on, if there are any.
fn second_half(names: &mut Vec<u8>, from: usize) -> Option<Vec<u8>> {
    let rest = &names[from..];
    let middle = rest.len() / 2;
    let keep = rest[..middle].iter().rposition(|byte| *byte == 0).map_or(0, |last| last + 1);
    (!rest.is_empty()).then(|| names.split_off(from + keep))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_names_are_given_away_whole() {
        for (names, from, kept, given) in [
            ("a\0", 2, "a\0", None),
            ("a\0b\0", 2, "a\0", Some("b\0")),
            ("a\0bb\0cc\0", 2, "a\0bb\0", Some("cc\0")),
            ("a\0bb\0ccccccc\0", 2, "a\0bb\0", Some("ccccccc\0")),
            ("a\0bbbbbbbb\0c\0", 2, "a\0", Some("bbbbbbbb\0c\0")),
        ] {
            let mut left = names.as_bytes().to_vec();
            let half = second_half(&mut left, from);
            assert_eq!(half.as_deref(), given.map(str::as_bytes), "{names:?}");
            assert_eq!(left, kept.as_bytes(), "{names:?}");
        }
    }
}
