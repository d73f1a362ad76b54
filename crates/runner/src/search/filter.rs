//! Which entries a search looks at, in ripgrep's order: the request's globs, ignore-files, kinds of
//! files, hidden names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use sandbank_protocol::{Fault, FaultCode};

use super::rules::{Rules, Verdict};
use crate::limits::{MAX_GLOB_BYTES, MAX_GLOBS};

#[derive(Debug)]
pub(super) struct Filter {
    globs: Override,
    types: Types,
    hidden: bool,
    /// Whether ignore-files are not heeded.
    pub(super) ignored: bool,
}

impl Filter {
    pub(super) fn new(
        globs: &[String],
        types: &[String],
        hidden: bool,
        ignored: bool,
    ) -> Result<Self, Fault> {
        Ok(Self { globs: overrides(globs)?, types: kinds(types)?, hidden, ignored })
    }

    /// Whether the entry at a path below the workspace is to be looked at.
    pub(super) fn passes(&self, rules: Option<&Rules>, path: &[u8], is_dir: bool) -> bool {
        let text = Path::new(OsStr::from_bytes(path));
        match self.globs.matched(text, is_dir) {
            Match::None => {}
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => return true,
        }
        let mut wanted = false;
        match rules.and_then(|rules| rules.says(path, is_dir)) {
            None => {}
            Some(Verdict::Ignored) => return false,
            Some(Verdict::Wanted) => wanted = true,
        }
        match self.types.matched(text, is_dir) {
            Match::None => {}
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => wanted = true,
        }
        wanted || self.hidden || !is_hidden(path)
    }
}

fn is_hidden(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    name.starts_with(b".")
}

fn overrides(globs: &[String]) -> Result<Override, Fault> {
    bounded("globs", globs)?;
    let mut builder = OverrideBuilder::new("");
    for (index, glob) in globs.iter().enumerate() {
        let refuse = |error: ignore::Error| {
            invalid(format!("the glob {glob:?} (number {}) is not understood: {error}", index + 1))
        };
        if glob.trim_start_matches('!').trim().is_empty() {
            return Err(invalid(format!("glob number {} is empty", index + 1)));
        }
        builder.add(glob).map_err(refuse)?;
    }
    builder.build().map_err(|error| invalid(format!("the globs are not understood: {error}")))
}

fn kinds(types: &[String]) -> Result<Types, Fault> {
    bounded("types", types)?;
    if types.is_empty() {
        return Ok(Types::empty());
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    for name in types {
        match name.strip_prefix('!') {
            Some(name) => builder.negate(name),
            None => builder.select(name),
        };
    }
    builder.build().map_err(|error| invalid(format!("the types are not understood: {error}")))
}

fn bounded(what: &str, texts: &[String]) -> Result<(), Fault> {
    if texts.len() > MAX_GLOBS {
        return Err(invalid(format!("there are {} {what}, the limit is {MAX_GLOBS}", texts.len())));
    }
    match texts.iter().find(|text| text.len() > MAX_GLOB_BYTES) {
        Some(text) => Err(invalid(format!(
            "one of the {what} has {} bytes, the limit is {MAX_GLOB_BYTES}",
            text.len()
        ))),
        None => Ok(()),
    }
}

pub(super) fn invalid(message: String) -> Fault {
    Fault::new(FaultCode::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(globs: &[&str], types: &[&str]) -> Result<Filter, Fault> {
        let owned =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Filter::new(&owned(globs), &owned(types), false, false)
    }

    #[test]
    fn globs_choose_and_exclude_and_hidden_names_stay_out_unless_they_are_named() {
        let rust = filter(&["*.rs", "!generated.rs"], &[]).unwrap();
        for (path, passes) in
            [("a/b.rs", true), ("a/b.py", false), ("generated.rs", false), (".x.rs", true)]
        {
            assert_eq!(rust.passes(None, path.as_bytes(), false), passes, "{path}");
        }
        assert!(rust.passes(None, b"a", true) && !rust.passes(None, b".git", true));
        let typed = filter(&[], &["rust"]).unwrap();
        assert!(typed.passes(None, b"a.rs", false) && !typed.passes(None, b"a.py", false));
        let others = filter(&[], &["!rust"]).unwrap();
        assert!(!others.passes(None, b"a.rs", false) && others.passes(None, b"a.py", false));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (globs, types, word) in [
            (&["a", "b[z-a]"] as &[&str], &[] as &[&str], "number 2"),
            (&["[x"], &[], "[x"),
            (&["{a"], &[], "{a"),
            (&["!"], &[], "empty"),
            (&[], &["klingon"], "klingon"),
        ] {
            let fault = filter(globs, types).unwrap_err();
            assert!(fault.message.contains(word), "{}", fault.message);
        }
        let many = vec!["a"; MAX_GLOBS + 1];
        assert!(filter(&many, &[]).is_err());
        let long = "x".repeat(MAX_GLOB_BYTES + 1);
        assert!(filter(&[&long], &[]).is_err());
    }
}
