//! Where a copy comes from or goes to.

use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Local(PathBuf),
    /// Every way to read `NAME:PATH`, longest name first: keys may hold colons, and so may paths.
    /// Which is meant only the server knows.
    Remote(Vec<Remote>),
    /// Standard input or output.
    Standard,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) sandbox: String,
    pub(crate) path: String,
}

impl Place {
    /// `NAME:PATH` is remote unless a slash comes before the first colon.
    pub(crate) fn parse(text: &str) -> Self {
        if text == "-" {
            return Self::Standard;
        }
        let names = text.split('/').next().unwrap_or_default();
        let remote = |(at, _): (usize, &str)| {
            let (sandbox, path) = (text[..at].to_owned(), &text[at + 1..]);
            let path = if path.is_empty() { "." } else { path }.to_owned();
            Remote { sandbox, path }
        };
        let mut readings: Vec<_> = names.match_indices(':').map(remote).collect();
        readings.retain(|reading| !reading.sandbox.is_empty());
        readings.reverse();
        if readings.is_empty() || text.starts_with(':') {
            return Self::Local(PathBuf::from(text));
        }
        Self::Remote(readings)
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(readings: &[(&str, &str)]) -> Place {
        let reading = |(sandbox, path): &(&str, &str)| Remote {
            sandbox: (*sandbox).into(),
            path: (*path).into(),
        };
        Place::Remote(readings.iter().map(reading).collect())
    }

    #[test]
    fn places_are_told_apart_by_the_colon() {
        assert_eq!(Place::parse("sbx:a/b"), remote(&[("sbx", "a/b")]));
        assert_eq!(Place::parse("sbx:"), remote(&[("sbx", ".")]));
        assert_eq!(Place::parse("sbx:/workspace/a:b"), remote(&[("sbx", "/workspace/a:b")]));
        assert_eq!(Place::parse("./a:b"), Place::Local("./a:b".into()));
        assert_eq!(Place::parse("/tmp/a:/b"), Place::Local("/tmp/a:/b".into()));
        assert_eq!(Place::parse(":x"), Place::Local(":x".into()));
        assert_eq!(Place::parse("x"), Place::Local("x".into()));
        assert_eq!(Place::parse("-"), Place::Standard);
    }

    #[test]
    fn a_name_with_colons_has_several_readings_longest_name_first() {
        let absolute = remote(&[("chat:1", "/workspace/x"), ("chat", "1:/workspace/x")]);
        assert_eq!(Place::parse("chat:1:/workspace/x"), absolute);
        assert_eq!(Place::parse("chat:1:"), remote(&[("chat:1", "."), ("chat", "1:")]));
        assert_eq!(Place::parse("a:b:c"), remote(&[("a:b", "c"), ("a", "b:c")]));
        assert_eq!(Place::parse("a:./b:c"), remote(&[("a", "./b:c")]), "a path for certain");
    }
}
