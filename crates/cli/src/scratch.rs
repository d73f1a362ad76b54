//! Directories that go when we go, and are never deleted through something mounted below them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Failure};
use crate::options::fresh_name;

/// Removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// In the first of these places that can be written.
    pub(crate) fn make(prefix: &str, places: &[&Path]) -> Result<Self, Failure> {
        let name = fresh_name(prefix);
        let mut last = None;
        for place in places {
            let path = place.join(&name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => last = Some(Failure::from_io("make a temporary directory", &error)),
            }
        }
        let nowhere = || Failure::new(Exit::CannotWrite, "there is no place for temporary files");
        Err(last.unwrap_or_else(nowhere))
    }

    /// One that somebody made and left.
    pub(crate) fn adopt(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let path = self.0.display();
        if has_mounts(&self.0) {
            tracing::error!(%path, "something is still mounted in a temporary directory; it stays");
        } else if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::error!(%path, %error, "a temporary directory stays behind");
        }
    }
}

/// Unsure counts as yes.
fn has_mounts(path: &Path) -> bool {
    let Ok(table) = std::fs::read_to_string("/proc/self/mountinfo") else { return true };
    let Some(path) = path.to_str() else { return true };
    table.lines().any(|line| line.split(' ').nth(4).is_some_and(|place| is_below(place, path)))
}

fn is_below(place: &str, path: &str) -> bool {
    place.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let scratch = Scratch::make("x", &[&missing, dir.path()]).unwrap();
        std::fs::write(scratch.path().join("f"), "x").unwrap();
        drop(scratch);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn mounts_are_seen_below_a_path_and_not_beside_it() {
        assert!(has_mounts(Path::new("/proc")));
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a") && !is_below("/ab", "/a"));
    }
}
