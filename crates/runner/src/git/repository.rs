//! Which repository a path is in, if in one that is all in the workspace.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use sandbank_protocol::{Fault, FaultCode, GitRepository};
use sandbank_rooted_fs::RelPath;

use super::failure;
use super::run::{Run, Session};
use crate::files::fault::refuse;
use crate::files::query::Query;
use crate::limits::{MAX_GIT_FILTERS, MAX_GIT_SETTINGS_BYTES};

/// Where Git shall run, and what of the path is below that.
pub(super) struct Place {
    pub(super) cwd: Rc<OwnedFd>,
    pub(super) rest: Vec<u8>,
}

pub(super) struct Repository {
    pub(super) cwd: Rc<OwnedFd>,
    /// What was asked about, from `cwd`; empty for `cwd` itself.
    pub(super) rest: Vec<u8>,
    pub(super) git_dir: Vec<u8>,
    pub(super) work_tree: Vec<u8>,
    /// The work tree from the workspace.
    pub(super) root: RelPath,
    /// Names of filters that its settings have.
    pub(super) filters: Vec<Vec<u8>>,
}

/// Also when there is none.
pub(super) type Found = Result<Repository, GitRepository>;

/// Whether Git runs in the named directory, or only in the one that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Enter,
    Keep,
}

impl Session<'_> {
    /// The deepest directory there is on the way to a path: what was deleted has a history, too.
    pub(super) fn place(&self, path: &RelPath, last: Last) -> Result<Place, Fault> {
        let mut directory = path.clone();
        let mut rest: Vec<u8> = Vec::new();
        let mut keep = last == Last::Keep;
        loop {
            let opened = self.workspace.root().open_directory(&directory);
            match (opened, directory.split()) {
                (Ok(opened), up) if !keep || up.is_none() => {
                    let cwd = opened.as_fd().try_clone_to_owned().map_err(|error| {
                        Fault::new(FaultCode::LimitReached, format!("no descriptor: {error}"))
                    })?;
                    return Ok(Place { cwd: Rc::new(cwd), rest });
                }
                (Err(error), None) => return Err(refuse(error)),
                (_, Some((up, name))) => {
                    let below =
                        if rest.is_empty() { Vec::new() } else { [b"/", &rest[..]].concat() };
                    rest = [name.as_bytes(), &below].concat();
                    directory = up;
                    keep = false;
                }
                (Ok(_), None) => unreachable!("the root is taken by the first arm"),
            }
        }
    }

    /// By the `path` parameter, which is the workspace where it is absent.
    pub(super) async fn find_by(&self, query: &mut Query, last: Last) -> Result<Found, Fault> {
        let path = match query.take("path") {
            Some(path) => self.workspace.path(path)?,
            None => RelPath::root(),
        };
        self.find(&path, last).await
    }

    pub(super) async fn find(&self, path: &RelPath, last: Last) -> Result<Found, Fault> {
        let Place { cwd, rest } = self.place(path, last)?;
        let limit = MAX_GIT_SETTINGS_BYTES;
        let words = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
        let locating = self.try_run(Run::anywhere(&cwd, &words, limit));
        let words = ["config", "--list", "--name-only", "-z"];
        let listing = self.try_run(Run::anywhere(&cwd, &words, limit));
        let (located, settings) = tokio::join!(locating, listing);
        let (located, settings) = (located?, settings?);
        if located.code != Some(0) {
            let said = failure::said(&located);
            let is_none = ["not a git repository", "must be run in a work tree", "bare repository"];
            if located.code.is_some() && is_none.iter().any(|words| said.contains(words)) {
                return Ok(Err(none("neither the directory nor one above it is a repository")));
            }
            return Err(failure::of(&located));
        }
        if settings.code != Some(0) {
            return Err(match settings.truncated {
                true => too_many("settings"),
                false => failure::of(&settings),
            });
        }
        let filters = filters(&settings.stdout)?;
        let Some([work_tree, git_dir, common]) = lines(&located.stdout) else {
            return Ok(Err(none("its path has a line end in it")));
        };
        // Relative where it is the directory above.
        let common = if common.starts_with(b"/") { common } else { git_dir };
        let below = |path| Path::new(OsStr::from_bytes(path)).strip_prefix(&self.real).ok();
        let (Some(root), true, true) =
            (below(work_tree), below(git_dir).is_some(), below(common).is_some())
        else {
            return Ok(Err(none("the repository is not all in the workspace")));
        };
        let root = match root.as_os_str().as_bytes() {
            b"" => RelPath::root(),
            root => self.workspace.path(root)?,
        };
        let (git_dir, work_tree) = (git_dir.to_vec(), work_tree.to_vec());
        Ok(Ok(Repository { cwd, rest, git_dir, work_tree, root, filters }))
    }
}

impl Repository {
    pub(super) fn describe(&self) -> GitRepository {
        let root = match self.root.as_bytes() {
            b"" => ".".to_owned(),
            root => String::from_utf8_lossy(root).into_owned(),
        };
        GitRepository { is_repository: true, reason: None, root: Some(root) }
    }
}

fn none(reason: &str) -> GitRepository {
    GitRepository { is_repository: false, reason: Some(reason.to_owned()), root: None }
}

fn lines(text: &[u8]) -> Option<[&[u8]; 3]> {
    let text = text.strip_suffix(b"\n")?;
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.try_into().ok()
}

/// Names of the filters in a list of settings.
fn filters(settings: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let mut filters: Vec<Vec<u8>> = Vec::new();
    for key in settings.split(|byte| *byte == 0) {
        let Some(rest) = key.strip_prefix(b"filter.") else { continue };
        let Some(end) = rest.iter().rposition(|byte| *byte == b'.') else { continue };
        let name = &rest[..end];
        if name.contains(&b'=') {
            let message = "the repository has a filter whose name cannot be overridden";
            return Err(Fault::new(FaultCode::Conflict, message));
        }
        if !filters.iter().any(|known| known == name) {
            filters.push(name.to_vec());
        }
        if filters.len() > MAX_GIT_FILTERS {
            return Err(too_many("filters"));
        }
    }
    Ok(filters)
}

fn too_many(what: &str) -> Fault {
    Fault::new(FaultCode::LimitReached, format!("the repository has too many {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_found_by_name_and_those_that_cannot_be_overridden_refused() {
        let settings = b"core.bare\0filter.lfs.clean\0filter.lfs.process\0filter.a.b.smudge\0";
        assert_eq!(filters(settings).unwrap(), [b"lfs".to_vec(), b"a.b".to_vec()]);
        assert_eq!(filters(b"filter.x=y.clean\0").unwrap_err().code, FaultCode::Conflict);
        let many: String = (0..=MAX_GIT_FILTERS).map(|n| format!("filter.f{n}.clean\0")).collect();
        assert_eq!(filters(many.as_bytes()).unwrap_err().code, FaultCode::LimitReached);
    }

    #[test]
    fn a_path_with_a_line_end_is_not_taken_for_two() {
        assert_eq!(lines(b"/a\n/b\nc\n"), Some([&b"/a"[..], b"/b", b"c"]));
        assert_eq!(lines(b"/a\nx\n/b\nc\n"), None);
    }
}
