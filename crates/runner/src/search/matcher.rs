//! The pattern's matcher, which stops when the search is over.
//!
//! One match is found in time that grows with the text, but finding all of them in one long line may
//! take the square of it; the searcher itself does not look at the clock meanwhile.

use std::fmt;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;

use super::bounds::Bounds;

pub(super) struct Interruptible<'a> {
    pub(super) regex: RegexMatcher,
    pub(super) bounds: &'a Bounds,
}

#[derive(Debug)]
pub(super) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the search is over")
    }
}

impl Interruptible<'_> {
    fn check(&self) -> Result<(), Interrupted> {
        if self.bounds.is_over() { Err(Interrupted) } else { Ok(()) }
    }
}

const NEVER: &str = "a compiled pattern does not fail";

impl Matcher for Interruptible<'_> {
    type Captures = NoCaptures;
    type Error = Interrupted;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Interrupted> {
        self.check()?;
        Ok(self.regex.find_at(haystack, at).expect(NEVER))
    }

    fn new_captures(&self) -> Result<NoCaptures, Interrupted> {
        Ok(NoCaptures::new())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, Interrupted> {
        self.check()?;
        Ok(self.regex.shortest_match_at(haystack, at).expect(NEVER))
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.regex.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.regex.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Interrupted> {
        self.check()?;
        Ok(self.regex.find_candidate_line(haystack).expect(NEVER))
    }
}
