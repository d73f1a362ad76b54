//! Words of commands that may be paths, for rules about paths.
//!
//! Which word is a path is the program's business, so each is looked at, with what follows a sign in it.

use super::command::{Part, Word, base};
use super::limits::MAX_PIECES;
use super::path::PathPattern;
use super::pattern::Match;

/// Given a directory, these go through all of it.
const WALKERS: [&str; 12] =
    ["ack", "ag", "du", "fd", "fdfind", "find", "ln", "mv", "rg", "rsync", "tar", "tree"];

/// These do so with `-r`, `-R`, `-a`, `-d` or a long option.
const WALKERS_WITH_OPTION: [&str; 12] = [
    "chgrp", "chmod", "chown", "cp", "diff", "egrep", "fgrep", "grep", "rm", "scp", "zgrep", "zip",
];

/// Those of them that, given no directory, go through the one they are in.
const WALKERS_OF_HERE: [&str; 11] =
    ["ack", "ag", "du", "egrep", "fd", "fdfind", "fgrep", "find", "grep", "rg", "tree"];

pub(super) fn of_part(pattern: &PathPattern, part: &Part, moves: bool) -> Match {
    let Some((program, rest)) = part.words.split_first() else { return Match::No };
    let name = base(&program.text);
    // What a link is to begins where the link is.
    let moves = moves || name == "ln";
    let walks = WALKERS.contains(&name)
        || WALKERS_WITH_OPTION.contains(&name) && rest.iter().any(goes_down);
    let of_program = match program.text.contains('/') {
        true => touches(pattern, program, moves),
        false => Match::No,
    };
    let found = rest.iter().map(|word| {
        let found = touches(pattern, word, moves);
        match walks && word.fixed() && !word.text.starts_with('-') {
            true => found.max(pattern.reaches(&word.text)),
            false => found,
        }
    });
    // Which of their words is a directory cannot be told, so this one may be meant besides.
    let of_here = match walks && WALKERS_OF_HERE.contains(&name) && !names_directory(name, rest) {
        true if moves => Match::Maybe,
        true => pattern.reaches(".").min(Match::Maybe),
        false => Match::No,
    };
    found.max().unwrap_or(Match::No).max(of_program).max(of_here)
}

/// Only the first words of `find` surely are directories.
fn names_directory(name: &str, words: &[Word]) -> bool {
    let first = words.first().filter(|word| word.fixed());
    name == "find" && first.is_some_and(|word| !word.text.starts_with(['-', '(', '!']))
}

fn goes_down(option: &Word) -> bool {
    let Some(letters) = option.text.strip_prefix('-') else { return !option.fixed() };
    letters.starts_with('-') || letters.contains(['r', 'R', 'a', 'd'])
}

/// `moves`: the script goes to other directories, so that a relative path may be anywhere.
pub(super) fn touches(pattern: &PathPattern, word: &Word, moves: bool) -> Match {
    if word.is_number() {
        return pattern.touches("0").min(Match::Maybe);
    }
    if !word.fixed() {
        return Match::Maybe;
    }
    let text = word.text.as_str();
    let signs: Vec<usize> = text.match_indices(['=', '@', ':', ',']).map(|(at, _)| at).collect();
    if signs.len() > MAX_PIECES {
        return Match::Maybe;
    }
    let behind = signs.iter().map(|at| &text[at + 1..]);
    let between = text.split(['=', '@', ':', ',']);
    // `-Ipath`
    let of_option = text.strip_prefix('-').and_then(|rest| {
        let mut letters = rest.chars();
        letters.next().map(|_| letters.as_str())
    });
    let texts = std::iter::once(text).chain(behind).chain(between).chain(of_option);
    let found = texts.filter(|text| !text.is_empty()).map(|text| pattern.touches(text)).max();
    let found = found.unwrap_or(Match::No);
    let is_option = text.starts_with('-');
    if moves && !is_option && !text.starts_with('/') { found.max(Match::Maybe) } else { found }
}
