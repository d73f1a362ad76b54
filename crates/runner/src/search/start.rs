//! Where a search begins: a directory of the workspace, and the ignore-files above it.

use std::sync::Arc;

use sandbank_protocol::Fault;
use sandbank_rooted_fs::{RelPath, Root};

use super::bounds::Bounds;
use super::filter::Filter;
use super::rules::{Budget, Present, Rules};
use super::walk::Walk;
use crate::files::Workspace;
use crate::files::fault::refuse;

/// The workspace itself when none is given.
pub(super) fn path(workspace: &Workspace, path: &[u8]) -> Result<RelPath, Fault> {
    if path.is_empty() { Ok(RelPath::root()) } else { workspace.path(path) }
}

pub(super) fn walk(
    root: &Root,
    path: &RelPath,
    filter: Filter,
    bounds: Bounds,
    max_depth: u64,
) -> Result<Walk, Fault> {
    let top = root.open_directory(path).map_err(refuse)?;
    let mut prefix = path.as_bytes().to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    let budget = Arc::new(Budget::default());
    let rules = if filter.ignored { None } else { above(root, path, &budget) };
    Ok(Walk { top, prefix, rules, filter, bounds, max_depth, budget })
}

/// The rules of the directories above `path`, up to the workspace.
fn above(root: &Root, path: &RelPath, budget: &Arc<Budget>) -> Option<Arc<Rules>> {
    let mut parents = Vec::new();
    let mut at = path.clone();
    while let Some((parent, _)) = at.split() {
        parents.push(parent.clone());
        at = parent;
    }
    let mut rules = None;
    for parent in parents.into_iter().rev() {
        let Ok(directory) = root.open_directory(&parent) else { continue };
        let has = |name: &str| directory.stat(name.as_ref()).is_ok_and(|stat| stat.is_some());
        let present =
            Present { ignore: has(".ignore"), gitignore: has(".gitignore"), git: has(".git") };
        let prefix = parent.as_bytes().len() + usize::from(!parent.is_root());
        rules = Rules::below(rules.as_ref(), &directory, present, prefix, budget);
    }
    rules
}
