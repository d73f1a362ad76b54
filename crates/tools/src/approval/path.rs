//! Paths of files, as rules see them: absolute, without detours. Links are not looked at.

use globset::GlobMatcher;
use sandbank_protocol::{WORKSPACE, WORKSPACE_ALIASES};

use super::pattern::{Match, glob};

#[derive(Debug)]
pub(super) struct PathPattern {
    glob: GlobMatcher,
    /// The directory that all of them are in.
    above: String,
}

impl PathPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let absolute = match pattern {
            "" => return Err("a path is missing".to_owned()),
            pattern if pattern.starts_with("**/") => format!("/{pattern}"),
            pattern if pattern.starts_with('/') => rooted(pattern),
            pattern => format!("{WORKSPACE}/{}", pattern.trim_start_matches("./")),
        };
        let literal =
            absolute.find(['*', '?', '[', '{']).map_or(&*absolute, |end| &absolute[..end]);
        let above = literal.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
        Ok(Self { glob: glob(&absolute, true)?, above })
    }

    /// For rules that allow: a way back out of a directory may lead elsewhere, if that is a link.
    pub(super) fn is_match(&self, path: &str) -> bool {
        let back = path.split('/').any(|name| name == "..");
        !back && !is_of_process(path) && self.glob.is_match(absolute(path))
    }

    /// Also a directory that is made for such files; one that may have some is not certain.
    pub(super) fn touches(&self, path: &str) -> Match {
        let of_process = is_of_process(path);
        let path = absolute(path);
        if self.glob.is_match(&path) || self.glob.is_match(format!("{path}/_")) {
            return Match::Yes;
        }
        if of_process {
            return Match::Maybe;
        }
        let holds = self.above.strip_prefix(path.trim_end_matches('/'));
        let holds = holds.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let anywhere = self.above.is_empty() && (path == WORKSPACE || path == "/");
        if holds && !self.above.is_empty() || anywhere { Match::Maybe } else { Match::No }
    }

    /// Of all that is below a directory.
    pub(super) fn reaches(&self, directory: &str) -> Match {
        let path = absolute(directory);
        let below = self.above.is_empty() || path.starts_with(&format!("{}/", self.above));
        self.touches(directory).max(if below { Match::Maybe } else { Match::No })
    }
}

/// In there are links to every directory that a process has open, and to where it is.
fn is_of_process(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let process = |name: &str| matches!(name, "self" | "thread-self") || number(name);
    names.windows(2).any(|pair| pair[0] == "proc" && process(pair[1]))
}

fn absolute(path: &str) -> String {
    let joined =
        if path.starts_with('/') { path.to_owned() } else { format!("{WORKSPACE}/{path}") };
    let mut names: Vec<&str> = Vec::new();
    for name in joined.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    rooted(&format!("/{}", names.join("/")))
}

/// By the workspace's first name.
fn rooted(path: &str) -> String {
    for alias in WORKSPACE_ALIASES {
        match path.strip_prefix(alias) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                return format!("{WORKSPACE}{rest}");
            }
            _ => {}
        }
    }
    path.to_owned()
}
