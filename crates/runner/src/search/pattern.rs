//! Patterns of requests as matchers, and refusals that say where a pattern is wrong.

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use sandbank_protocol::{Fault, NamePattern, NameSearch, SearchCase, TextSearch};

use super::filter::invalid;
use crate::limits::{
    MAX_GLOB_BYTES, MAX_PATTERN_BYTES, MAX_REGEX_BYTES, MAX_REGEX_NESTING, MAX_REGEX_STATES_BYTES,
};

/// Of the text in lines, or over them.
pub(super) fn text(search: &TextSearch) -> Result<RegexMatcher, Fault> {
    let mut builder = bounded(search.case);
    builder.multi_line(true).fixed_strings(search.literal).word(search.word);
    if !search.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    build(&builder, &search.pattern, search.literal)
}

/// Of a path below the workspace.
#[derive(Debug, Clone)]
pub(super) enum Name {
    /// Found in the last name.
    Regex(RegexMatcher),
    Glob {
        glob: GlobMatcher,
        whole_path: bool,
    },
}

impl Name {
    pub(super) fn new(search: &NameSearch) -> Result<Self, Fault> {
        let literal = search.kind == NamePattern::Text;
        if search.kind == NamePattern::Glob {
            return glob(search);
        }
        let mut builder = bounded(search.case);
        builder.fixed_strings(literal);
        build(&builder, &search.pattern, literal).map(Self::Regex)
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        match self {
            Self::Regex(regex) => regex.is_match(name).unwrap_or(false),
            Self::Glob { glob, whole_path } => {
                use std::os::unix::ffi::OsStrExt;
                let text = if *whole_path { path } else { name };
                glob.is_match(std::ffi::OsStr::from_bytes(text))
            }
        }
    }
}

fn glob(search: &NameSearch) -> Result<Name, Fault> {
    let pattern = &search.pattern;
    check_length(pattern, MAX_GLOB_BYTES)?;
    let insensitive = match search.case {
        SearchCase::Sensitive => false,
        SearchCase::Insensitive => true,
        SearchCase::Smart => !pattern.chars().any(char::is_uppercase),
    };
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).case_insensitive(insensitive);
    let glob = builder.build().map_err(|error| {
        invalid(format!("the glob {pattern:?} is not understood: {}", error.kind()))
    })?;
    Ok(Name::Glob { glob: glob.compile_matcher(), whole_path: pattern.contains('/') })
}

fn bounded(case: SearchCase) -> RegexMatcherBuilder {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_STATES_BYTES)
        .nest_limit(MAX_REGEX_NESTING)
        .case_insensitive(case == SearchCase::Insensitive)
        .case_smart(case == SearchCase::Smart);
    builder
}

fn build(
    builder: &RegexMatcherBuilder,
    pattern: &str,
    literal: bool,
) -> Result<RegexMatcher, Fault> {
    check_length(pattern, MAX_PATTERN_BYTES)?;
    builder.build(pattern).map_err(|error| refusal(pattern, literal, &error))
}

fn check_length(pattern: &str, limit: usize) -> Result<(), Fault> {
    match pattern.len() {
        0 => Err(invalid("the pattern is empty".to_owned())),
        length if length > limit => {
            Err(invalid(format!("the pattern has {length} bytes, the limit is {limit}")))
        }
        _ => Ok(()),
    }
}

/// The compiler's own text draws an arrow below the pattern; ours fits on a line.
fn refusal(pattern: &str, literal: bool, error: &grep_regex::Error) -> Fault {
    use grep_regex::ErrorKind;
    if let ErrorKind::NotAllowed(_) = error.kind() {
        return invalid(
            "the pattern has a line break, which no line contains: ask for multiline".to_owned(),
        );
    }
    let parsed = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .nest_limit(MAX_REGEX_NESTING)
        .build()
        .parse(pattern);
    let (what, at) = match &parsed {
        Err(regex_syntax::Error::Parse(error)) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        Err(regex_syntax::Error::Translate(error)) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        _ => return invalid(format!("the pattern cannot be searched for: {error}")),
    };
    if literal {
        return invalid(format!("the pattern cannot be searched for: {error}"));
    }
    invalid(format!("the pattern is no regular expression: {what}, at byte {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pattern: &str) -> String {
        let search = TextSearch { pattern: pattern.into(), ..TextSearch::default() };
        text(&search).unwrap_err().message
    }

    #[test]
    fn a_wrong_pattern_is_refused_with_its_place() {
        for (pattern, what, at) in [
            ("ab(cd", "unclosed group", "at byte 2"),
            ("a[z-y]", "invalid character class range", "at byte 2"),
            ("x{2,1}", "invalid repetition", "at byte 1"),
            ("ü\\p{Klingon}", "Unicode property not found", "at byte 2"),
            ("*", "repetition operator missing expression", "at byte 0"),
        ] {
            let message = refused(pattern);
            assert!(message.contains(what) && message.ends_with(at), "{pattern}: {message}");
        }
    }

    #[test]
    fn patterns_that_would_take_much_memory_are_refused() {
        let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
        let long = "a".repeat(MAX_PATTERN_BYTES + 1);
        for pattern in ["((a{1000}){1000}){1000}", r"(\w{200}){200}", &deep, &long, "", "a\nb"] {
            assert!(!refused(pattern).is_empty());
        }
        let fine = TextSearch { pattern: r"\w{20}\s+(a|b)*".into(), ..TextSearch::default() };
        assert!(text(&fine).is_ok());
    }

    fn name(kind: NamePattern, case: SearchCase, pattern: &str) -> Name {
        let search = NameSearch { pattern: pattern.into(), kind, case, ..NameSearch::default() };
        Name::new(&search).unwrap()
    }

    #[test]
    fn names_are_matched_by_text_glob_and_regex() {
        use NamePattern::{Glob, Regex, Text};
        use SearchCase::{Insensitive, Sensitive, Smart};
        for (kind, case, pattern, path, matches) in [
            (Text, Sensitive, "ain.", "src/main.rs", true),
            (Text, Sensitive, "src", "src/main.rs", false),
            (Text, Sensitive, "MAIN", "src/main.rs", false),
            (Text, Insensitive, "MAIN", "src/main.rs", true),
            (Text, Smart, "main", "src/Main.rs", true),
            (Text, Smart, "Main", "src/main.rs", false),
            (Text, Smart, "a*", "aab", false),
            (Glob, Sensitive, "*.rs", "src/main.rs", true),
            (Glob, Sensitive, "main", "src/main.rs", false),
            (Glob, Sensitive, "src/*.rs", "src/main.rs", true),
            (Glob, Sensitive, "src/*.rs", "src/a/main.rs", false),
            (Glob, Sensitive, "**/main.*", "src/a/main.rs", true),
            (Glob, Smart, "*.RS", "src/main.rs", false),
            (Glob, Smart, "*.rs", "src/main.RS", true),
            (Regex, Sensitive, "^m.*s$", "src/main.rs", true),
            (Regex, Sensitive, "^src", "src/main.rs", false),
        ] {
            assert_eq!(
                name(kind, case, pattern).matches(path.as_bytes()),
                matches,
                "{kind:?} {case:?} {pattern} {path}"
            );
        }
        let odd = name(Text, Sensitive, "x");
        assert!(odd.matches(b"a/\xffx\n") && !odd.matches(b"x/\xff"));
        let wrong = NameSearch { pattern: "[a".into(), kind: Glob, ..NameSearch::default() };
        assert!(Name::new(&wrong).is_err());
    }
}
