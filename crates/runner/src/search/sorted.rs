//! The same way in the order of paths, by one thread.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use sandbank_protocol::{FileKind, SearchCut};

use super::directory::{Listing, OpenDirectory, PendingDirectory};
use super::walk::{Visit, Walk, Worker};
use crate::limits::{MAX_SEARCH_LISTING_BYTES, SEARCH_HELD_DIRECTORIES};

/// A directory on the way down.
struct Level {
    directory: Held,
    listing: Listing,
    next: usize,
}

enum Held {
    Open(OpenDirectory),
    /// Closed for now, since many are open. The rules are its own.
    Closed(PendingDirectory),
}

impl Walk {
    pub(super) fn run_sorted<V: Visit>(&self, visit: V) -> V::Counts {
        let mut worker = Worker::new(self, visit);
        worker.sorted();
        worker.visit.counts()
    }
}

impl<V: Visit> Worker<'_, V> {
    fn sorted(&mut self) {
        let mut levels = Vec::new();
        self.enter(&mut levels, self.walk.first());
        while let Some(level) = levels.last_mut() {
            if self.walk.bounds.is_over() {
                return;
            }
            let Some((name, kind)) = level.listing.get(level.next) else {
                levels.pop();
                self.reopen(&mut levels);
                continue;
            };
            level.next += 1;
            let Held::Open(directory) = &level.directory else { continue };
            if !self.entry(directory, name, kind) {
                continue;
            }
            match kind {
                FileKind::File => {
                    self.file(directory, name);
                }
                FileKind::Directory => {
                    let below = directory.below(name.as_bytes());
                    self.enter(&mut levels, below);
                }
                _ => {}
            }
        }
    }

    fn enter(&mut self, levels: &mut Vec<Level>, pending: PendingDirectory) {
        if self.walk.bounds.is_over() {
            return;
        }
        self.visit.look();
        let mut listing = Listing::default();
        let Some(directory) = self.open(pending, &mut listing) else { return };
        listing.sort();
        if levels.len() >= SEARCH_HELD_DIRECTORIES {
            close(levels.last_mut());
        }
        levels.push(Level { directory: Held::Open(directory), listing, next: 0 });
        let bytes: usize = levels.iter().map(|level| level.listing.bytes()).sum();
        if bytes > MAX_SEARCH_LISTING_BYTES {
            self.walk.bounds.cut(SearchCut::Nodes);
        }
    }

    /// What was closed on the way down is needed again on the way up. If it is gone, so is the rest
    /// of it.
    fn reopen(&mut self, levels: &mut Vec<Level>) {
        while let Some(level) = levels.last_mut() {
            let Held::Closed(closed) = &mut level.directory else { return };
            let PendingDirectory { path, depth, rules } = closed;
            let name: &[u8] = if path.is_empty() { b"." } else { path };
            if let Ok(directory) = self.walk.top.open_directory(OsStr::from_bytes(name)) {
                let mut path = std::mem::take(path);
                if !path.is_empty() {
                    path.push(b'/');
                }
                let rules = rules.take();
                let open = OpenDirectory { directory, path, depth: *depth, rules };
                level.directory = Held::Open(open);
                return;
            }
            self.visit.unreadable();
            levels.pop();
        }
    }
}

fn close(level: Option<&mut Level>) {
    let Some(level) = level else { return };
    if let Held::Open(directory) = &level.directory {
        let path = directory.path.strip_suffix(b"/").unwrap_or(&directory.path).to_vec();
        let pending =
            PendingDirectory { path, depth: directory.depth, rules: directory.rules.clone() };
        level.directory = Held::Closed(pending);
    }
}
