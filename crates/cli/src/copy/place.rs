//! Where a copy comes from or goes to.

use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Local(PathBuf),
    Remote {
        sandbox: String,
        path: String,
    },
    /// Standard input or output.
    Standard,
}

impl Place {
    /// `NAME:PATH` is remote unless a slash comes before the colon. Keys may hold colons, so an
    /// absolute path is split off at `:/`.
    pub(crate) fn parse(text: &str) -> Self {
        if text == "-" {
            return Self::Standard;
        }
        let split = match text.find(":/") {
            Some(at) => Some((&text[..at], &text[at + 1..])),
            None => text.split_once(':'),
        };
        match split {
            Some((sandbox, path)) if !sandbox.is_empty() && !sandbox.contains('/') => {
                let path = if path.is_empty() { "." } else { path };
                Self::Remote { sandbox: sandbox.to_owned(), path: path.to_owned() }
            }
            _ => Self::Local(PathBuf::from(text)),
        }
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(sandbox: &str, path: &str) -> Place {
        Place::Remote { sandbox: sandbox.into(), path: path.into() }
    }

    #[test]
    fn places_are_told_apart_by_the_colon() {
        assert_eq!(Place::parse("sbx:a/b"), remote("sbx", "a/b"));
        assert_eq!(Place::parse("sbx:"), remote("sbx", "."));
        assert_eq!(Place::parse("sbx:a:b"), remote("sbx", "a:b"));
        assert_eq!(Place::parse("chat:1:/workspace/x"), remote("chat:1", "/workspace/x"));
        assert_eq!(Place::parse("./a:b"), Place::Local("./a:b".into()));
        assert_eq!(Place::parse("/tmp/a:/b"), Place::Local("/tmp/a:/b".into()));
        assert_eq!(Place::parse(":x"), Place::Local(":x".into()));
        assert_eq!(Place::parse("-"), Place::Standard);
    }
}
