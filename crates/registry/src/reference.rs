//! What people call an image of a registry: `[registry/]repository[:tag][@digest]`.

use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// What an image without a registry is an image of, and where that answers.
const HUB: &str = "docker.io";
const HUB_HOST: &str = "registry-1.docker.io";
const HUB_ALIASES: [&str; 2] = ["index.docker.io", HUB_HOST];

const LONGEST: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: String,
    digest: Option<Digest>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not an image of a registry: write [registry[:port]/]name[:tag] or …@sha256:<digest>"
)]
pub struct InvalidReference(String);

impl Reference {
    /// `docker.io`, `ghcr.io`, `localhost:5000`.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub(crate) fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The last part of a manifest's address.
    pub(crate) fn version(&self) -> String {
        self.digest.as_ref().map_or_else(|| self.tag.clone(), Digest::to_string)
    }

    /// Where the registry answers.
    pub(crate) fn host(&self) -> &str {
        if self.registry == HUB { HUB_HOST } else { &self.registry }
    }
}

/// `host`, `host:port`, `[::1]:port`.
pub(crate) fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let digits = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let name = |name: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
        !name.is_empty() && name.bytes().all(plain) && !name.starts_with(['.', '-'])
    };
    let address = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    (name(host) || address(host)) && port.is_none_or(digits)
}

fn is_component(word: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    word.bytes().all(inner) && edge(word.bytes().next()) && edge(word.bytes().last())
}

fn is_tag(word: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let first = word.bytes().next();
    word.len() <= 128
        && word.bytes().all(inner)
        && first.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = || InvalidReference(text.chars().take(100).collect());
        if text.len() > LONGEST {
            return Err(invalid());
        }
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest.parse().map_err(|()| invalid())?)),
            None => (text, None),
        };
        // The rule of all clients: what looks like a host is one, if something follows it.
        let (registry, rest) = match named.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
                (if HUB_ALIASES.contains(&host) { HUB } else { host }, rest)
            }
            _ => (HUB, named),
        };
        let (path, tag) = rest.rsplit_once(':').unwrap_or((rest, "latest"));
        let repository = match path.contains('/') || registry != HUB {
            true => path.to_owned(),
            false => format!("library/{path}"),
        };
        let good = is_host(registry) && is_tag(tag) && repository.split('/').all(is_component);
        if !good {
            return Err(invalid());
        }
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.to_owned(), digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => write!(f, ":{}", self.tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed_as_other_clients_do() {
        let zeros = "0".repeat(64);
        for (written, meant) in [
            ("node", "docker.io/library/node:latest"),
            ("node:24", "docker.io/library/node:24"),
            ("oven/bun:1.3", "docker.io/oven/bun:1.3"),
            ("index.docker.io/library/node", "docker.io/library/node:latest"),
            ("localhost/a", "localhost/a:latest"),
            ("localhost:5000/a/b:T_1", "localhost:5000/a/b:T_1"),
            ("[::1]:5000/a", "[::1]:5000/a:latest"),
            ("ghcr.io/a/b/c:v1", "ghcr.io/a/b/c:v1"),
        ] {
            assert_eq!(written.parse::<Reference>().unwrap().to_string(), meant);
        }
        let pinned: Reference = format!("a.b/c:1@sha256:{zeros}").parse().unwrap();
        assert_eq!(pinned.to_string(), format!("a.b/c@sha256:{zeros}"));
        assert_eq!(pinned.version(), format!("sha256:{zeros}"));
    }

    #[test]
    fn what_would_be_another_address_is_refused() {
        let long = format!("a:{}", "b".repeat(129));
        for bad in [
            "",
            "A",
            "a b",
            "a//b",
            "../a",
            "a/..",
            "a/../b",
            "host:99999/a",
            "host:0/a",
            "a:",
            "a@b",
            "a@sha256:00",
            "a.b/c?d",
            "user@host.de/a",
            "a.b:80:90/c",
            "-x.y/a",
            "a/b#c",
            "[x]:1/a",
            "http://a/b",
            &long,
        ] {
            assert!(bad.parse::<Reference>().is_err(), "{bad:?} was accepted");
        }
    }
}
