//! One watched tree: it follows the kernel's words, enters new directories and lists them, so that
//! nothing is missed that was in them before they were watched.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::inotify::ReadFlags;
use rustix::io::Errno;
use sandbank_protocol::{FileKind, WatchEvent, WatchKind};
use sandbank_rooted_fs::{Directory, RelPath, Root, RootedError};
use tokio::time::Instant;

use super::changes::Changes;
use super::exclude::Excluded;
use super::inotify::{Inotify, Word};
use super::shared::{Phase, Shared};
use super::tree::{TOP, Tree};
use crate::limits::{MAX_ALL_WATCHED_DIRECTORIES, MAX_WATCH_EVENTS, MAX_WATCHED_DIRECTORIES};

/// What is watched; two who want the same share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) path: RelPath,
    pub(super) recursive: bool,
    pub(super) excluded: Excluded,
}

pub(super) struct Watched {
    pub(super) wanted: Wanted,
    /// No directory is kept open: the kernel tells of the end of one that nobody has open.
    root: Arc<Root>,
    tree: Tree,
    /// Directories that have to be listed yet, and whether what is in them is told.
    unlisted: VecDeque<(u64, bool)>,
    /// The one of them that is being listed.
    reading: Option<Reading>,
    /// Directories that were not where they should be: they are gone, or on a move that the kernel
    /// is about to tell.
    missing: Vec<(u64, bool)>,
    pub(super) changes: Changes,
    pub(super) shared: Rc<Shared>,
    /// Why everything is listed anew.
    resetting: Option<String>,
    /// When it was last seen that the top is where it should be.
    pub(super) checked: Instant,
}

/// A directory that is listed in parts: it may have any number of entries.
struct Reading {
    node: u64,
    tell: bool,
    /// Where it was when it was opened.
    below: RelPath,
    directory: Directory,
    told: usize,
}

/// What the kernel has to be told, and how much room there is.
pub(super) struct Kernel<'a> {
    pub(super) inotify: &'a Inotify,
    /// Who has which directory, of all watches together.
    pub(super) owners: &'a HashMap<i32, Vec<u64>>,
    /// Numbers that nobody had before.
    pub(super) fresh: HashSet<i32>,
    /// Numbers that this watch has now, or had, and those that it has given up.
    pub(super) taken: Vec<i32>,
    pub(super) freed: Vec<i32>,
}

impl Kernel<'_> {
    fn take(&mut self, wd: i32) {
        self.taken.push(wd);
        if !self.owners.contains_key(&wd) {
            self.fresh.insert(wd);
        }
    }

    /// Directories of all watches together, each counted once.
    fn total(&self) -> usize {
        self.owners.len() + self.fresh.len()
    }
}

/// It cannot be watched any more.
struct Failed(String);

impl Watched {
    pub(super) fn new(wanted: Wanted, root: Arc<Root>, shared: Rc<Shared>) -> Self {
        Self {
            wanted,
            root,
            tree: Tree::default(),
            unlisted: VecDeque::new(),
            reading: None,
            missing: Vec::new(),
            changes: Changes::default(),
            shared,
            resetting: None,
            checked: Instant::now(),
        }
    }

    /// Whether the kernel's number is of a directory in it.
    pub(super) fn has(&self, wd: i32) -> bool {
        self.tree.node(wd).is_some()
    }

    pub(super) fn is_listing(&self) -> bool {
        !self.unlisted.is_empty() || self.reading.is_some()
    }

    /// From the top. Everybody is told to list again when that is done.
    pub(super) fn begin(&mut self, kernel: &mut Kernel<'_>, reason: Option<&str>) {
        self.clear(kernel);
        drop(self.changes.take());
        self.resetting = reason.map(str::to_owned);
        if let Err(failed) = self.begin_at_top(kernel) {
            self.fail(kernel, failed);
        }
    }

    fn begin_at_top(&mut self, kernel: &mut Kernel<'_>) -> Result<(), Failed> {
        let top = self.root.open_directory(&self.wanted.path);
        let top = top.map_err(|error| Failed(error.to_string()))?;
        let wd = kernel.inotify.add(&top).map_err(|error| Failed(no_watch(error)))?;
        kernel.take(wd);
        self.tree.set_top(wd);
        self.checked = Instant::now();
        if self.wanted.recursive {
            self.unlisted.push_back((TOP, false));
        }
        Ok(())
    }

    fn clear(&mut self, kernel: &mut Kernel<'_>) {
        kernel.freed.extend(self.tree.clear());
        self.unlisted.clear();
        self.reading = None;
        self.missing.clear();
    }

    /// Ends it if the top is not there any more: of a move of what is above it the kernel tells
    /// nothing.
    pub(super) fn check_top(&mut self, kernel: &mut Kernel<'_>) {
        if self.shared.is_over() {
            return;
        }
        self.checked = Instant::now();
        let failed = match self.open(kernel, TOP) {
            Ok(Some(_)) => return,
            Ok(None) => top_is_gone(),
            Err(failed) => failed,
        };
        // What was heard since is of another place than it would be told of.
        for node in self.changes.take().1 {
            kernel.freed.extend(self.tree.remove(node));
        }
        self.fail(kernel, failed);
    }

    fn fail(&mut self, kernel: &mut Kernel<'_>, Failed(reason): Failed) {
        self.clear(kernel);
        self.tell(kernel);
        self.shared.push(WatchEvent::new(0, WatchKind::Reset).because(&reason));
        self.shared.enter(Phase::Over(reason));
    }

    /// Lists a directory, or some of it; how many entries that were, and none when there is nothing
    /// to list.
    pub(super) fn list_some(&mut self, kernel: &mut Kernel<'_>) -> Option<usize> {
        let listed = match self.reading.take() {
            Some(reading) => self.read(kernel, reading),
            None => {
                let (node, tell) = self.unlisted.pop_front()?;
                self.list(kernel, node, tell)
            }
        };
        Some(listed.unwrap_or_else(|failed| {
            self.fail(kernel, failed);
            0
        }))
    }

    /// When all is listed that was to be.
    pub(super) fn settle(&mut self) {
        if self.is_listing() || self.shared.is_over() {
            return;
        }
        if let Some(reason) = self.resetting.take() {
            self.shared.push(WatchEvent::new(0, WatchKind::Reset).because(reason));
        }
        self.shared.enter(Phase::Ready);
    }

    fn list(&mut self, kernel: &mut Kernel<'_>, node: u64, tell: bool) -> Result<usize, Failed> {
        let Some((below, directory)) = self.open(kernel, node)? else {
            self.missing.push((node, tell));
            return Ok(0);
        };
        self.read(kernel, Reading { node, tell, below, directory, told: 0 })
    }

    fn read(&mut self, kernel: &mut Kernel<'_>, mut reading: Reading) -> Result<usize, Failed> {
        let (node, tell) = (reading.node, reading.tell);
        if self.tree.path(node).as_ref() != Some(&reading.below) {
            // It is gone, or has moved since: then all of it is looked at there.
            if self.tree.wd(node).is_some() {
                self.unlisted.push_back((node, tell));
            }
            return Ok(0);
        }
        let mut found = Vec::new();
        let mut entries = 0;
        let listed = reading.directory.each_of_some(|name, kind| {
            entries += 1;
            let is_dir = kind == FileKind::Directory;
            if tell || is_dir {
                found.push((name.as_bytes().to_vec(), is_dir));
            }
        });
        let more = match listed {
            Ok(more) => more,
            Err(error) if is_gone(&error) => return Ok(entries),
            Err(error) => return Err(Failed(error.to_string())),
        };
        if tell {
            reading.told += found.len();
        }
        if reading.told > MAX_WATCH_EVENTS {
            self.begin(kernel, Some("more came at once than is told: list again"));
            return Ok(entries);
        }
        let below = reading.below.clone();
        if more {
            self.reading = Some(reading);
        }
        for (name, is_dir) in found {
            let path = self.path(&below, &name);
            if tell {
                self.changes.add(WatchKind::Created, path.clone(), is_dir);
            }
            if is_dir && !self.wanted.excluded.has(&path) && self.tree.child(node, &name).is_none()
            {
                self.enter(kernel, node, &name, tell)?;
            }
        }
        Ok(entries)
    }

    /// Begins to watch a directory, which is to be listed then.
    fn enter(
        &mut self,
        kernel: &mut Kernel<'_>,
        parent: u64,
        name: &[u8],
        tell: bool,
    ) -> Result<(), Failed> {
        let wd = match self.watch(kernel, parent, name)? {
            Seen::Watched(wd) => wd,
            Seen::NotEntered => return Ok(()),
            Seen::ParentMissing => {
                // With what else is in there, once it is known where that is.
                self.missing.push((parent, tell));
                return Ok(());
            }
        };
        let known = self.tree.child(parent, name);
        if known.is_some() && known == self.tree.node(wd) {
            return Ok(());
        }
        let (node, freed) = self.tree.insert(parent, name, wd);
        kernel.freed.extend(freed);
        self.unlisted.push_back((node, tell));
        Ok(())
    }

    fn watch(&self, kernel: &mut Kernel<'_>, parent: u64, name: &[u8]) -> Result<Seen, Failed> {
        let Some((_, above)) = self.open(kernel, parent)? else { return Ok(Seen::ParentMissing) };
        let directory = match above.open_directory(OsStr::from_bytes(name)) {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => return Ok(Seen::NotEntered),
            Err(error) => return Err(unwatchable(&error)),
        };
        let added = match kernel.inotify.add(&directory) {
            Ok(wd) => wd,
            Err(Errno::ACCESS | Errno::NOENT) => return Ok(Seen::NotEntered),
            Err(error) => return Err(Failed(no_watch(error))),
        };
        kernel.take(added);
        let room = self.has(added) || self.tree.len() < MAX_WATCHED_DIRECTORIES;
        if !room || kernel.total() > MAX_ALL_WATCHED_DIRECTORIES {
            return Err(Failed(format!(
                "there are too many directories: {MAX_WATCHED_DIRECTORIES} are watched in one \
                 tree and {MAX_ALL_WATCHED_DIRECTORIES} in all; watch a smaller tree, or exclude some"
            )));
        }
        Ok(Seen::Watched(added))
    }

    /// A directory of the tree, if it is where the tree has it and still the same one.
    fn open(
        &self,
        kernel: &mut Kernel<'_>,
        node: u64,
    ) -> Result<Option<(RelPath, Directory)>, Failed> {
        let Some(below) = self.tree.path(node) else { return Ok(None) };
        let opened = self.root.open_directory(&self.wanted.path);
        let opened =
            opened.and_then(|top| if node == TOP { Ok(top) } else { top.open_below(&below) });
        let directory = match opened {
            Ok(directory) => directory,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(unwatchable(&error)),
        };
        let wd = kernel.inotify.add(&directory).ok();
        if let Some(wd) = wd.filter(|wd| Some(*wd) != self.tree.wd(node)) {
            // Nobody's, unless it is in the tree elsewhere.
            kernel.take(wd);
            return Ok(None);
        }
        Ok(wd.map(|_| (below, directory)))
    }

    pub(super) fn apply(&mut self, kernel: &mut Kernel<'_>, word: &Word) {
        let Some(node) = self.tree.node(word.wd) else { return };
        let result = match &word.name {
            None => self.about_itself(node, word.what),
            Some(name) => self.about_entry(kernel, node, name, word),
        };
        if let Err(failed) = result {
            self.fail(kernel, failed);
        }
    }

    fn about_itself(&mut self, node: u64, what: ReadFlags) -> Result<(), Failed> {
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
        if node == TOP && what.intersects(gone) {
            return Err(top_is_gone());
        }
        Ok(())
    }

    fn about_entry(
        &mut self,
        kernel: &mut Kernel<'_>,
        node: u64,
        name: &[u8],
        word: &Word,
    ) -> Result<(), Failed> {
        let Some(below) = self.tree.path(node) else { return Ok(()) };
        let (what, path) = (word.what, self.path(&below, name));
        let is_dir = what.contains(ReadFlags::ISDIR);
        let entered = is_dir && self.wanted.recursive && !self.wanted.excluded.has(&path);
        let known = self.tree.child(node, name);
        if what.contains(ReadFlags::MOVED_FROM) {
            if let Some(known) = known {
                self.tree.detach(known);
            }
            self.changes.leave(word.cookie, path, is_dir, known);
        } else if what.contains(ReadFlags::MOVED_TO) {
            let moved = self.changes.moving(word.cookie);
            if entered {
                return self.arrived(kernel, node, name, (word.cookie, path, moved));
            }
            self.changes.arrive(word.cookie, path, is_dir);
            if let Some(moved) = moved {
                kernel.freed.extend(self.tree.remove(moved));
            }
        } else if what.contains(ReadFlags::CREATE) {
            self.changes.add(WatchKind::Created, path, is_dir);
            if entered {
                return self.enter(kernel, node, name, true);
            }
        } else if what.contains(ReadFlags::DELETE) {
            self.changes.add(WatchKind::Removed, path, is_dir);
            if let Some(known) = known {
                kernel.freed.extend(self.tree.remove(known));
            }
        } else if !is_dir {
            self.changes.add(WatchKind::Modified, path, is_dir);
        }
        Ok(())
    }

    /// A directory has come to a new place; what is known of it stays, if it is still the same one.
    fn arrived(
        &mut self,
        kernel: &mut Kernel<'_>,
        parent: u64,
        name: &[u8],
        (cookie, path, moved): (u32, Vec<u8>, Option<u64>),
    ) -> Result<(), Failed> {
        let Some(moved) = moved else {
            self.changes.arrive(cookie, path, true);
            return self.enter(kernel, parent, name, true);
        };
        match self.watch(kernel, parent, name)? {
            // Another one was at the old place when that was looked at.
            Seen::Watched(wd) if Some(wd) != self.tree.wd(moved) => {
                self.changes.arrive_anew(cookie, path, true);
                kernel.freed.extend(self.tree.remove(moved));
                self.enter(kernel, parent, name, true)
            }
            // If it is gone again, the kernel tells that next.
            _ => {
                self.changes.arrive(cookie, path, true);
                kernel.freed.extend(self.tree.attach(moved, parent, name));
                self.unlisted.extend(self.missing.drain(..));
                Ok(())
            }
        }
    }

    /// Tells what has gathered.
    pub(super) fn tell(&mut self, kernel: &mut Kernel<'_>) {
        let (changes, gone) = self.changes.take();
        for node in gone {
            kernel.freed.extend(self.tree.remove(node));
        }
        let tree = &self.tree;
        self.missing.retain(|(node, _)| tree.wd(*node).is_some());
        for change in changes {
            self.shared.push(change.event());
        }
    }

    pub(super) fn give_up(&mut self) -> Vec<i32> {
        self.tree.clear()
    }

    /// From the workspace.
    fn path(&self, below: &RelPath, name: &[u8]) -> Vec<u8> {
        let above = [self.wanted.path.as_bytes(), below.as_bytes()];
        let parts = above.into_iter().filter(|part| !part.is_empty()).chain([name]);
        parts.collect::<Vec<_>>().join(&b'/')
    }
}

/// What comes of looking for a directory.
enum Seen {
    Watched(i32),
    /// It is gone, is a link or another mount by now, or may not be read.
    NotEntered,
    ParentMissing,
}

fn top_is_gone() -> Failed {
    Failed("the watched directory was removed or moved".to_owned())
}

fn unwatchable(error: &RootedError) -> Failed {
    Failed(format!("a directory cannot be watched: {error}"))
}

fn is_gone(error: &RootedError) -> bool {
    use RootedError as E;
    matches!(
        error,
        E::NotFound(_)
            | E::NotADirectory(_)
            | E::Escapes(_)
            | E::PermissionDenied(_)
            | E::WrongKind { .. }
    )
}

fn no_watch(error: Errno) -> String {
    match error {
        Errno::NOSPC => "the kernel has no room for more watched directories; watch a smaller \
                         tree, or raise fs.inotify.max_user_watches on the host"
            .to_owned(),
        error => format!("the kernel refuses to watch a directory: {error}"),
    }
}
