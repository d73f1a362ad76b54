//! Client path text → a path below the root. Pure; nothing is looked up.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use crate::limits::{MAX_NAME_BYTES, MAX_PATH_BYTES};

/// A path below a root: no empty, `.` or `..` component, no NUL, never absolute.
///
/// The root itself is the path without components. Names are bytes, not text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelPath(Vec<u8>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    #[error("the path is empty")]
    Empty,
    #[error("the path has {0} bytes, the limit is {MAX_PATH_BYTES}")]
    TooLong(usize),
    #[error("a name in the path has {0} bytes, the limit is {MAX_NAME_BYTES}")]
    NameTooLong(usize),
    #[error("the path contains a NUL byte")]
    Nul,
    #[error("the path contains a `..` component")]
    ParentComponent,
    #[error("the absolute path is not below {0}")]
    Outside(String),
}

impl InvalidPath {
    /// Whether the path is well formed but leads somewhere else.
    pub fn leads_outside(&self) -> bool {
        matches!(self, Self::ParentComponent | Self::Outside(_))
    }
}

impl RelPath {
    /// Accepts a path relative to the root, or absolute below one of its names.
    pub fn parse(path: impl AsRef<[u8]>, names: &RootNames) -> Result<Self, InvalidPath> {
        let path = path.as_ref();
        if path.is_empty() {
            return Err(InvalidPath::Empty);
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(InvalidPath::TooLong(path.len()));
        }
        if path.contains(&0) {
            return Err(InvalidPath::Nul);
        }
        let below = match path.first() {
            Some(b'/') => names.strip(path).ok_or_else(|| InvalidPath::Outside(names.first()))?,
            _ => path,
        };
        let mut clean = Vec::with_capacity(below.len());
        for name in below.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => continue,
                b".." => return Err(InvalidPath::ParentComponent),
                name if name.len() > MAX_NAME_BYTES => {
                    return Err(InvalidPath::NameTooLong(name.len()));
                }
                name => {
                    if !clean.is_empty() {
                        clean.push(b'/');
                    }
                    clean.extend_from_slice(name);
                }
            }
        }
        Ok(Self(clean))
    }

    pub fn root() -> Self {
        Self(Vec::new())
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The names joined by `/`; empty for the root itself.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path of an entry, named by the kernel, of this directory.
    #[must_use]
    pub fn join(&self, name: &OsStr) -> Self {
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(&self.0);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        Self(path)
    }

    /// Whether this is what is at `other`, or below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(other.0.as_slice());
        other.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// The directory and the name in it; none for the root itself.
    pub fn split(&self) -> Option<(RelPath, &OsStr)> {
        if self.is_root() {
            return None;
        }
        let (directory, name) = match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&self.0[..0], &self.0[..]),
        };
        Some((Self(directory.to_vec()), OsStr::from_bytes(name)))
    }

    /// This path, its parent, and so on up to the root.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = RelPath> {
        std::iter::successors(Some(self.clone()), |path| path.split().map(|(up, _)| up))
    }
}

impl fmt::Display for RelPath {
    /// Quoted and escaped: names are hostile text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("the root directory");
        }
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({self})")
    }
}

/// The absolute names under which clients, and links, reach the root directory.
#[derive(Debug, Clone)]
pub struct RootNames(Vec<Vec<u8>>);

impl RootNames {
    /// Its own path first, then its aliases. Trailing slashes do not matter.
    pub fn new<N: AsRef<OsStr>>(
        own: impl AsRef<OsStr>,
        aliases: impl IntoIterator<Item = N>,
    ) -> Self {
        let mut names = vec![trimmed(own.as_ref())];
        names.extend(aliases.into_iter().map(|alias| trimmed(alias.as_ref())));
        Self(names)
    }

    /// Of a root that no absolute path leads to.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// What follows the longest matching name; none when the path is not below the root.
    pub(crate) fn strip<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        self.0
            .iter()
            .filter_map(|name| path.strip_prefix(name.as_slice()))
            .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
            .min_by_key(|rest| rest.len())
    }

    fn first(&self) -> String {
        self.0.first().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
    }
}

fn trimmed(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    let end = name.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    name[..end].to_vec()
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
