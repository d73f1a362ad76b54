//! What is the workspace's and what is the service's, kept apart: whoever works in the workspace
//! must not reach secrets, sockets or programs of whoever serves it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Problem;

/// The paths of a start, each with the name that a person set it by.
#[derive(Debug, Clone)]
pub struct Layout {
    pub root: (String, PathBuf),
    /// Everything that must not lie in the workspace: data directory, secrets, program.
    pub apart: Vec<(String, PathBuf)>,
}

impl Layout {
    /// All that is wrong, one line each.
    pub fn problems(&self) -> Vec<Problem> {
        let (setting, root) = &self.root;
        let shown = root.display();
        let wrong = |what: String, fix: &str| vec![Problem::new(setting, what, fix)];
        if !root.is_absolute() {
            return wrong(format!("{shown} is not absolute"), "give the whole path, from / on");
        }
        let found = match fs::metadata(root) {
            Ok(found) => found,
            Err(error) => {
                return wrong(
                    format!("{shown} cannot be used: {error}"),
                    "make the directory, or name another one",
                );
            }
        };
        if !found.is_dir() {
            return wrong(format!("{shown} is not a directory"), "name a directory");
        }
        let top = fs::metadata("/");
        if top.is_ok_and(|top| identity(&top) == identity(&found)) {
            let what = format!("{shown} is the whole machine");
            return wrong(what, "name a directory that holds only the workspace");
        }
        let inside = self.apart.iter().filter(|(_, path)| is_below(path, identity(&found)));
        inside
            .map(|(setting, path)| {
                let what = format!("{} lies in the workspace {shown}", path.display());
                Problem::new(setting, what, "move it out of there")
            })
            .collect()
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether the directory is met on the way up, by whatever name or mount it is reached, or on the
/// way there, where a link could be changed. What is not there yet will be where its parent is.
fn is_below(path: &Path, directory: (u64, u64)) -> bool {
    let existing = path.ancestors().find_map(|part| fs::canonicalize(part).ok());
    let existing = existing.unwrap_or_default();
    existing
        .ancestors()
        .chain(path.ancestors())
        .filter_map(|part| fs::metadata(part).ok())
        .any(|part| identity(&part) == directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(root: &Path, apart: &Path) -> Vec<String> {
        let apart = vec![("SANDBANK_DATA_DIR".to_owned(), apart.to_owned())];
        let root = ("WORKSPACE_ROOT".to_owned(), root.to_owned());
        Layout { root, apart }.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_lies_in_the_workspace_is_refused_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let data = dir.path().join("data");
        fs::create_dir(&root).unwrap();
        fs::create_dir(&data).unwrap();
        assert_eq!(layout(&root, &data), Vec::<String>::new());
        assert_eq!(layout(&root, &dir.path().join("root-and-more")), Vec::<String>::new());
        std::os::unix::fs::symlink(&root, data.join("link")).unwrap();
        std::os::unix::fs::symlink(&data, root.join("out")).unwrap();
        for inside in [root.clone(), root.join("x/y"), data.join("link/data")] {
            let lines = layout(&root, &inside);
            assert_eq!(lines.len(), 1, "{inside:?}: {lines:?}");
            assert!(lines[0].starts_with("SANDBANK_DATA_DIR: "), "{}", lines[0]);
            assert!(lines[0].ends_with("move it out of there"), "{}", lines[0]);
        }
        fs::create_dir(data.join("inner")).unwrap();
        let out = layout(&root, &root.join("out/inner"));
        assert_eq!(out.len(), 1, "a link in the workspace is whoever works there's to change");
    }

    #[test]
    fn a_root_that_is_none_is_refused_with_its_name_and_a_fix() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (root, says) in [
            (Path::new("/"), "the whole machine"),
            (Path::new("/proc/.."), "the whole machine"),
            (Path::new("relative"), "not absolute"),
            (Path::new("/nowhere/at/all"), "cannot be used"),
            (file.path(), "not a directory"),
        ] {
            let lines = layout(root, Path::new("/tmp"));
            assert!(lines[0].starts_with("WORKSPACE_ROOT: "), "{lines:?}");
            assert!(lines[0].contains(says) && lines[0].contains("; "), "{lines:?}");
        }
    }
}
