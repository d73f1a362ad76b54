//! The directories of one watch, each with the kernel's number for it. Pure.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use sandbank_rooted_fs::RelPath;

pub(super) const TOP: u64 = 0;

#[derive(Debug)]
struct Node {
    /// None of the top, and of one that is between two places of a move.
    parent: Option<u64>,
    name: Vec<u8>,
    wd: i32,
    children: HashMap<Vec<u8>, u64>,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: HashMap<u64, Node>,
    by_wd: HashMap<i32, u64>,
    next: u64,
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, wd: i32) -> Option<u64> {
        self.by_wd.get(&wd).copied()
    }

    pub(super) fn wd(&self, node: u64) -> Option<i32> {
        self.nodes.get(&node).map(|node| node.wd)
    }

    pub(super) fn child(&self, parent: u64, name: &[u8]) -> Option<u64> {
        self.nodes.get(&parent)?.children.get(name).copied()
    }

    pub(super) fn set_top(&mut self, wd: i32) {
        self.next = self.next.max(TOP + 1);
        let top = Node { parent: None, name: Vec::new(), wd, children: HashMap::new() };
        self.nodes.insert(TOP, top);
        self.by_wd.insert(wd, TOP);
    }

    /// The names from the top; none of what is not in the tree now.
    pub(super) fn path(&self, node: u64) -> Option<RelPath> {
        let mut names = Vec::new();
        let mut at = node;
        while at != TOP {
            let node = self.nodes.get(&at)?;
            names.push(&node.name);
            at = node.parent?;
        }
        let join = |path: RelPath, name: &&Vec<u8>| path.join(OsStr::from_bytes(name));
        Some(names.iter().rev().fold(RelPath::root(), join))
    }

    /// Takes the place of whatever had the name or the number. Returns the new node, and numbers
    /// that nobody has any more.
    pub(super) fn insert(&mut self, parent: u64, name: &[u8], wd: i32) -> (u64, Vec<i32>) {
        let mut freed = Vec::new();
        for old in [self.child(parent, name), self.node(wd)].into_iter().flatten() {
            freed.extend(self.remove(old));
        }
        freed.retain(|freed| *freed != wd);
        let id = self.next;
        self.next += 1;
        let (name, children) = (name.to_vec(), HashMap::new());
        if let Some(above) = self.nodes.get_mut(&parent) {
            above.children.insert(name.clone(), id);
        }
        self.nodes.insert(id, Node { parent: Some(parent), name, wd, children });
        self.by_wd.insert(wd, id);
        (id, freed)
    }

    /// It has left its place and may come to another.
    pub(super) fn detach(&mut self, node: u64) {
        let Some(moved) = self.nodes.get_mut(&node) else { return };
        let (parent, name) = (moved.parent.take(), moved.name.clone());
        if let Some(above) = parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            above.children.remove(&name);
        }
    }

    pub(super) fn attach(&mut self, node: u64, parent: u64, name: &[u8]) -> Vec<i32> {
        let freed = self.child(parent, name).map(|old| self.remove(old)).unwrap_or_default();
        if let Some(above) = self.nodes.get_mut(&parent) {
            above.children.insert(name.to_vec(), node);
        }
        if let Some(moved) = self.nodes.get_mut(&node) {
            (moved.parent, moved.name) = (Some(parent), name.to_vec());
        }
        freed
    }

    /// With everything below it. Returns the numbers that nobody has any more.
    pub(super) fn remove(&mut self, node: u64) -> Vec<i32> {
        self.detach(node);
        let mut freed = Vec::new();
        let mut open = vec![node];
        while let Some(id) = open.pop() {
            let Some(node) = self.nodes.remove(&id) else { continue };
            open.extend(node.children.into_values());
            // Another node may have it by now.
            if self.by_wd.get(&node.wd) == Some(&id) {
                self.by_wd.remove(&node.wd);
                freed.push(node.wd);
            }
        }
        freed
    }

    pub(super) fn clear(&mut self) -> Vec<i32> {
        self.nodes.clear();
        self.by_wd.drain().map(|(wd, _)| wd).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(tree: &Tree, node: u64) -> Option<String> {
        tree.path(node).map(|path| String::from_utf8(path.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn what_is_below_moves_along_and_what_is_replaced_is_freed() {
        let mut tree = Tree::default();
        tree.set_top(1);
        let (a, _) = tree.insert(TOP, b"a", 2);
        let (b, _) = tree.insert(a, b"b", 3);
        assert_eq!(path(&tree, b).as_deref(), Some("a/b"));
        tree.detach(a);
        assert_eq!(path(&tree, b), None, "between two places");
        tree.insert(TOP, b"c", 4);
        assert_eq!(tree.attach(a, TOP, b"c"), [4]);
        assert_eq!(path(&tree, b).as_deref(), Some("c/b"));
        let (again, freed) = tree.insert(TOP, b"d", 3);
        assert_eq!(
            (freed, tree.node(3)),
            (Vec::new(), Some(again)),
            "the same directory elsewhere"
        );
        assert_eq!(tree.child(a, b"b"), None);
        let mut all = tree.remove(a);
        all.extend(tree.clear());
        all.sort_unstable();
        assert_eq!((all, tree.len()), (vec![1, 2, 3], 0));
    }
}
