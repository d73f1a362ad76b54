//! Changes of one tree that have not been told yet: in order, and those of one path made one where
//! that loses nothing. Pure.

use std::collections::HashMap;

use sandbank_protocol::{WatchEvent, WatchKind};
use tokio::time::Instant;

use crate::files::hex;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) kind: WatchKind,
    pub(super) path: Vec<u8>,
    pub(super) from: Option<Vec<u8>>,
    pub(super) is_dir: bool,
}

#[derive(Debug, Default)]
pub(super) struct Changes {
    /// None where two halves of a move became one.
    list: Vec<Option<Change>>,
    /// Where the last change of a path is.
    last: HashMap<Vec<u8>, usize>,
    /// By the kernel's number of a move: who has left, where that stands, and which node it was.
    left: HashMap<u32, (usize, Option<u64>)>,
    since: Option<Instant>,
    /// Where a directory left last: of what is before, nothing is known to be told still.
    barrier: usize,
}

impl Changes {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// When the first of them came.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn add(&mut self, kind: WatchKind, path: Vec<u8>, is_dir: bool) {
        use WatchKind::{Created, Modified, Moved};
        let before = self.last.get(&path).filter(|at| **at >= self.barrier);
        let before = before.and_then(|at| self.list[*at].as_ref());
        let told = match (kind, before.map(|change| change.kind)) {
            (Modified, Some(Created | Modified)) => true,
            // A listing finds what was told of by the kernel.
            (Created, Some(Created | Modified | Moved)) => true,
            _ => false,
        };
        if !told {
            self.push(Change { kind, path, from: None, is_dir });
        }
    }

    /// One half of a move: it is gone unless the other half comes.
    pub(super) fn leave(&mut self, cookie: u32, path: Vec<u8>, is_dir: bool, node: Option<u64>) {
        self.left.insert(cookie, (self.list.len(), node));
        self.push(Change { kind: WatchKind::Removed, path, from: None, is_dir });
    }

    /// The node that left with this number, if that was seen.
    pub(super) fn moving(&self, cookie: u32) -> Option<u64> {
        self.left.get(&cookie).and_then(|(_, node)| *node)
    }

    /// What was told of the one that left was of another: it is gone, and this one is new.
    pub(super) fn arrive_anew(&mut self, cookie: u32, path: Vec<u8>, is_dir: bool) {
        self.left.remove(&cookie);
        self.add(WatchKind::Created, path, is_dir);
    }

    /// The other half of a move.
    pub(super) fn arrive(&mut self, cookie: u32, path: Vec<u8>, is_dir: bool) {
        let left = self.left.remove(&cookie);
        let from = left.and_then(|(at, _)| self.list[at].take());
        match from {
            Some(from) => {
                let from = Some(from.path);
                self.push(Change { kind: WatchKind::Moved, path, from, is_dir });
            }
            None => self.add(WatchKind::Created, path, is_dir),
        }
    }

    /// All of them, and the nodes that have left for good.
    pub(super) fn take(&mut self) -> (Vec<Change>, Vec<u64>) {
        let gone = self.left.drain().filter_map(|(_, (_, node))| node).collect();
        self.last.clear();
        (self.since, self.barrier) = (None, 0);
        (self.list.drain(..).flatten().collect(), gone)
    }

    fn push(&mut self, change: Change) {
        self.since.get_or_insert_with(Instant::now);
        let leaves = matches!(change.kind, WatchKind::Removed | WatchKind::Moved);
        if leaves && change.is_dir {
            self.barrier = self.list.len();
        }
        self.last.insert(change.path.clone(), self.list.len());
        self.list.push(Some(change));
    }
}

impl Change {
    pub(super) fn event(self) -> WatchEvent {
        let mut event = WatchEvent::new(0, self.kind);
        let (path, path_hex) = named(self.path);
        (event.path, event.path_hex) = (Some(path), path_hex);
        if let Some((from, from_hex)) = self.from.map(named) {
            (event.from, event.from_hex) = (Some(from), from_hex);
        }
        event.is_dir = Some(self.is_dir);
        event
    }
}

fn named(path: Vec<u8>) -> (String, Option<String>) {
    String::from_utf8(path).map_or_else(
        |error| {
            let bytes = error.into_bytes();
            (String::from_utf8_lossy(&bytes).into_owned(), Some(hex(&bytes)))
        },
        |path| (path, None),
    )
}

#[cfg(test)]
mod tests {
    use WatchKind::{Created, Modified, Moved, Removed};

    use super::*;

    fn kinds(changes: &mut Changes) -> Vec<(WatchKind, String)> {
        let (list, _) = changes.take();
        list.into_iter()
            .map(|change| (change.kind, String::from_utf8(change.path).unwrap()))
            .collect()
    }

    #[test]
    fn a_burst_of_one_file_is_one_change_and_the_order_is_kept() {
        let mut changes = Changes::default();
        for (kind, path) in [
            (Created, "a"),
            (Modified, "a"),
            (Modified, "b"),
            (Modified, "a"),
            (Modified, "b"),
            (Removed, "a"),
            (Created, "a"),
            (Modified, "a"),
            (Created, "a"),
        ] {
            changes.add(kind, path.into(), false);
        }
        let expected = [(Created, "a"), (Modified, "b"), (Removed, "a"), (Created, "a")];
        let expected: Vec<_> = expected.map(|(kind, path)| (kind, path.to_owned())).into();
        assert_eq!(kinds(&mut changes), expected);
        changes.add(Modified, "a".into(), false);
        assert_eq!(kinds(&mut changes).len(), 1, "what was told is told anew");
    }

    #[test]
    fn two_halves_are_a_move_and_one_is_not() {
        let mut changes = Changes::default();
        changes.leave(1, "a".into(), true, Some(7));
        changes.leave(2, "out".into(), true, Some(8));
        changes.add(Modified, "x".into(), false);
        assert_eq!((changes.moving(1), changes.moving(3)), (Some(7), None));
        changes.arrive(1, "b".into(), true);
        changes.arrive(3, "in".into(), false);
        changes.add(Modified, "b".into(), true);
        let (list, gone) = changes.take();
        let told: Vec<_> = list.iter().map(|change| (change.kind, &change.path[..])).collect();
        let expected: [(WatchKind, &[u8]); 5] = [
            (Removed, b"out"),
            (Modified, b"x"),
            (Moved, b"b"),
            (Created, b"in"),
            (Modified, b"b"),
        ];
        assert_eq!(told, expected);
        assert_eq!((list[2].from.as_deref(), gone), (Some(&b"a"[..]), vec![8]));
    }

    #[test]
    fn what_was_in_a_directory_that_left_is_told_again() {
        let mut changes = Changes::default();
        changes.add(Created, "d/a".into(), false);
        changes.leave(1, "d".into(), true, Some(7));
        changes.arrive_anew(1, "e".into(), true);
        changes.add(Created, "d".into(), true);
        changes.add(Created, "d/a".into(), false);
        changes.add(Created, "d/a".into(), false);
        let expected =
            [(Created, "d/a"), (Removed, "d"), (Created, "e"), (Created, "d"), (Created, "d/a")];
        let expected: Vec<_> = expected.map(|(kind, path)| (kind, path.to_owned())).into();
        assert_eq!(kinds(&mut changes), expected);
    }
}
