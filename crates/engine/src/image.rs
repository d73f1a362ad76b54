//! Images: what a machine's root file system is made of.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Lower-case words with `.`, `_`, `-`, an optional `/` path, whose first word may have a `:port`, and
/// an optional `:tag`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageName(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not an image name: use a-z 0-9 . _ - with an optional /path and :tag, at most 128 characters"
)]
pub struct InvalidImageName(pub String);

impl ImageName {
    /// The host's `/usr`, read-only, with a synthetic `/etc`.
    pub const HOST: &str = "host";

    /// Those that `images/` defines, which no registry has under these names.
    pub const DEFINED_HERE: [&str; 3] = ["base", "node24", "python3.13"];

    pub fn host() -> Self {
        Self(Self::HOST.to_owned())
    }

    pub fn is_host(&self) -> bool {
        self.0 == Self::HOST
    }

    pub fn is_defined_here(&self) -> bool {
        Self::DEFINED_HERE.contains(&&*self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_word(word: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let first = word.bytes().next();
    first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) && word.bytes().all(inner)
}

fn is_host_with_port(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, port)| {
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        is_word(host) && digits && port.parse::<u16>().is_ok()
    })
}

impl FromStr for ImageName {
    type Err = InvalidImageName;

    fn from_str(text: &str) -> Result<Self, InvalidImageName> {
        let (host, rest) = match text.split_once('/') {
            Some((host, rest)) if host.contains(':') => (Some(host), rest),
            _ => (None, text),
        };
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        let clean = text.len() <= 128
            && host.is_none_or(is_host_with_port)
            && path.split('/').all(is_word)
            && tag.is_none_or(is_word);
        if clean {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidImageName(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for ImageName {
    type Error = InvalidImageName;

    fn try_from(text: String) -> Result<Self, InvalidImageName> {
        text.parse()
    }
}

impl From<ImageName> for String {
    fn from(name: ImageName) -> Self {
        name.0
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    pub name: ImageName,
    /// `sha256:…` of the image's configuration; none for `host`.
    pub digest: Option<String>,
    pub size_bytes: u64,
    pub layers: u32,
    /// Unix time in milliseconds.
    pub imported_at_ms: Option<u64>,
}

/// An image of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// `[registry[:port]/]name[:tag][@digest]`; whatever reads it says what is wrong with it.
    pub reference: String,
    /// For its registry only.
    pub credentials: Option<RegistryCredentials>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct RegistryCredentials {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:[redacted]", self.username)
    }
}

/// Heard right before a name begins to stand for another image, all of which is here.
pub type BeforeSwap = Arc<dyn Fn() + Send + Sync>;

/// What clearing away has given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freed {
    pub layers: u32,
    pub bytes: u64,
}

/// How far an import is, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub bytes_done: u64,
    pub bytes_total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_defined_here_is_what_has_a_dockerfile() {
        let images = concat!(env!("CARGO_MANIFEST_DIR"), "/../../images");
        let entries = std::fs::read_dir(images).unwrap().map(Result::unwrap);
        let defined = entries.filter(|entry| entry.path().join("Dockerfile").exists());
        let mut names: Vec<_> = defined.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ImageName::DEFINED_HERE);
    }

    #[test]
    fn names_follow_the_registries() {
        for good in [
            "host",
            "node24",
            "python3.13",
            "library/debian:bookworm",
            "a/b/c",
            "localhost:5000/a/b:c",
        ] {
            assert!(good.parse::<ImageName>().is_ok(), "{good} was refused");
        }
        for bad in [
            "",
            "..",
            "a//b",
            "/etc",
            "a:b:c",
            "A",
            "a b",
            "a/../b",
            ".hidden",
            "a:b/c",
            "a:99999/b",
            "a:/b",
            "a:1/b:c:d",
            "a/b:1/c",
        ] {
            assert!(bad.parse::<ImageName>().is_err(), "{bad:?} was accepted");
        }
    }
}
