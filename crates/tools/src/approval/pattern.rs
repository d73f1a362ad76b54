//! Patterns of rules over commands and paths.
//!
//! A rule that is strict should not be got around by an option or another order of letters, one that
//! allows should not be stretched; so the same pattern is read in two ways.

use globset::{GlobBuilder, GlobMatcher};

use super::command::{Word, base};
use super::limits::MAX_PATTERN_WORDS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It depends on what is computed.
    Maybe,
    Yes,
}

impl From<bool> for Match {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

#[derive(Debug)]
pub(super) struct CommandPattern {
    program: GlobMatcher,
    /// The pattern names a path, so that a program's last name is not enough.
    by_path: bool,
    words: Vec<(String, GlobMatcher)>,
    /// The same in order, with `-rf` and its like, for rules that allow.
    literal: Vec<GlobMatcher>,
    /// Of `-rf` and its like: in whatever order and however many words.
    letters: Vec<char>,
}

impl CommandPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let mut words: Vec<&str> = pattern.split_whitespace().collect();
        // A command may always go on.
        while words.len() > 1 && words.last() == Some(&"*") {
            words.pop();
        }
        if words.len() > MAX_PATTERN_WORDS {
            return Err(format!("a pattern has at most {MAX_PATTERN_WORDS} words"));
        }
        let (program, rest) = words.split_first().ok_or("a pattern needs a program")?;
        let (clusters, others): (Vec<&str>, Vec<&str>) =
            rest.iter().partition(|word| is_cluster(word));
        Ok(Self {
            program: glob(program, false)?,
            by_path: program.contains('/'),
            words: others
                .iter()
                .map(|word| glob(word, false).map(|glob| ((*word).to_owned(), glob)))
                .collect::<Result<_, _>>()?,
            literal: rest.iter().map(|word| glob(word, false)).collect::<Result<_, _>>()?,
            letters: clusters.iter().flat_map(|word| word.chars().skip(1)).collect(),
        })
    }

    /// For rules that ask or deny: options may stand between the words, with values of their own.
    pub(super) fn touches(&self, words: &[Word]) -> Match {
        let Some((program, rest)) = words.split_first() else { return Match::No };
        let by_name = !self.by_path && self.program.is_match(base(&program.text));
        if !program.fixed() {
            return Match::Maybe;
        }
        if !by_name && !self.program.is_match(&program.text) {
            return Match::No;
        }
        self.follow(rest).min(self.has_letters(rest))
    }

    /// For rules that allow: exactly these words, and then whatever follows.
    pub(super) fn begins(&self, words: &[Word]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let known = Word::fixed;
        let pairs = self.literal.iter().zip(rest);
        known(program)
            && self.program.is_match(&program.text)
            && rest.len() >= self.literal.len()
            && pairs.into_iter().all(|(glob, word)| known(word) && glob.is_match(&word.text))
    }

    /// Which of the pattern's words are behind us, and whether an option came last, which may have a
    /// value; each with how sure that is.
    fn follow(&self, rest: &[Word]) -> Match {
        let end = self.words.len();
        let mut states = vec![[Match::No; 2]; end + 1];
        states[0][0] = Match::Yes;
        let mut best = states[end][0];
        for word in rest {
            let mut next = vec![[Match::No; 2]; end + 1];
            let mut reach = |at: usize, option: bool, sure: Match| {
                let state = &mut next[at][usize::from(option)];
                *state = (*state).max(sure);
            };
            for (at, [plain, option]) in states.iter().copied().enumerate() {
                let either = plain.max(option);
                if at == end || either == Match::No {
                    continue;
                }
                if !word.fixed() {
                    // Nothing, one word or many.
                    (at..=end).for_each(|at| reach(at, true, either.min(Match::Maybe)));
                    continue;
                }
                let (literal, glob) = &self.words[at];
                if glob.is_match(&word.text) {
                    reach(at + 1, false, either);
                } else if may_be_option(literal, &word.text) {
                    reach(at + 1, false, either.min(Match::Maybe));
                }
                if word.text.starts_with('-') {
                    reach(at, true, either);
                } else {
                    reach(at, false, option);
                }
            }
            best = best.max(next[end][0]).max(next[end][1]);
            states = next;
        }
        best
    }

    /// A long option, or a letter of the other case, may be another name of a letter.
    fn has_letters(&self, rest: &[Word]) -> Match {
        let clusters = || rest.iter().filter(|word| is_cluster(&word.text));
        let has = |letter: &char| clusters().any(|word| word.text.contains(*letter));
        let like = |letter: &char| {
            let same = |other: char| other.eq_ignore_ascii_case(letter);
            clusters().any(|word| word.text.contains(same))
        };
        let other = |word: &Word| !word.fixed() || is_long(&word.text);
        if self.letters.iter().all(has) {
            Match::Yes
        } else if self.letters.iter().all(like) || rest.iter().any(other) {
            Match::Maybe
        } else {
            Match::No
        }
    }
}

/// `--force` may be written `-f` or `--forc`.
fn may_be_option(pattern: &str, word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    is_long(pattern) && (is_cluster(word) || is_long(name) && pattern.starts_with(name))
}

fn is_long(word: &str) -> bool {
    let letters = word.strip_prefix("--").unwrap_or_default();
    !letters.is_empty() && !matches!(letters, "help" | "version")
}

/// Short options in one word.
fn is_cluster(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|letter| letter.is_ascii_alphanumeric())
}

pub(super) fn glob(pattern: &str, separators: bool) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(separators).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
}
