//! Commands of the shell's own that set variables, or evaluate their words: known in their plain forms.

use super::variables::{is_name, is_ordinary, name_length, runs_later};
use super::word::Shape;
use super::{Part, Word};

const TESTS_OF_ONE: [&str; 21] = [
    "-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-z", "-n", "-p", "-S", "-b", "-c", "-g",
    "-k", "-u", "-O", "-G", "-t",
];
const TESTS_OF_TWO: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
const SHELL_OPTIONS: [&str; 6] = ["pipefail", "errexit", "nounset", "xtrace", "noglob", "verbose"];
/// These only say what a file name pattern stands for.
const SWITCHES: [&str; 5] = ["nullglob", "globstar", "dotglob", "nocaseglob", "failglob"];

/// Why it may do more than its words say.
pub(super) fn evaluates(name: &str, part: &Part) -> Option<&'static str> {
    let words = part.words.get(1..).unwrap_or_default();
    let plain = match name {
        "[" | "test" => is_plain_test(name, words),
        "printf" => is_plain_printf(words),
        "read" => is_plain_read(words),
        "unset" => are_names(words),
        "export" | "readonly" | "declare" | "typeset" | "local" => are_declared(part),
        "getopts" => matches!(words, [letters, name, ..]
            if letters.fixed() && name.fixed() && is_ordinary(&name.text)),
        "wait" => words.iter().all(is_number),
        "jobs" => words.iter().all(|word| is_number(word) || is(word, &["-l", "-p"])),
        "set" => is_plain_set(words),
        "shopt" => matches!(words, [sign, switches @ ..]
            if is(sign, &["-s", "-u"]) && switches.iter().all(|word| is(word, &SWITCHES))),
        _ => true,
    };
    (!plain).then_some("a command of the shell that sets variables or evaluates its words")
}

fn is(word: &Word, texts: &[&str]) -> bool {
    word.fixed() && texts.contains(&word.text.as_str())
}

fn is_number(word: &Word) -> bool {
    word.is_number() || word.shape <= Shape::Number && !word.text.starts_with('-')
}

/// `-v` evaluates a subscript, so it must be certain which word is an operator.
fn is_plain_test(name: &str, words: &[Word]) -> bool {
    let words = match (name, words.split_last()) {
        ("[", Some((last, words))) if is(last, &["]"]) => words,
        ("[", _) => return false,
        _ => words,
    };
    let words = match words.split_first() {
        Some((not, rest)) if is(not, &["!"]) => rest,
        _ => words,
    };
    let one = |word: &Word| word.shape <= Shape::One;
    match words {
        [] => true,
        [text] => one(text),
        [operator, text] => is(operator, &TESTS_OF_ONE) && one(text),
        [left, operator, right] => is(operator, &TESTS_OF_TWO) && one(left) && one(right),
        words => words.iter().all(|word| word.fixed() && !is(word, &["-v", "-R"])),
    }
}

/// `-v` sets a variable.
fn is_plain_printf(words: &[Word]) -> bool {
    match words.first() {
        None => true,
        Some(first) if first.fixed() => !first.text.starts_with('-') || first.text == "--",
        Some(first) => first.is_operand(),
    }
}

fn is_plain_read(words: &[Word]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.text.strip_prefix('-').filter(|_| word.fixed()) else {
            if word.fixed() && is_ordinary(&word.text) {
                continue;
            }
            return false;
        };
        let flags = letters.trim_start_matches(['r', 's']);
        let has_value = matches!(flags, "d" | "n" | "N" | "t" | "p" | "u");
        if has_value && words.next().is_none_or(|value| value.shape > Shape::One) {
            return false;
        }
        if !has_value && !flags.is_empty() {
            return false;
        }
    }
    true
}

fn are_names(words: &[Word]) -> bool {
    let rest = match words.split_first() {
        Some((option, rest)) if is(option, &["-v", "-f"]) => rest,
        _ => words,
    };
    rest.iter().all(|word| word.fixed() && is_name(&word.text) && !runs_later(&word.text))
}

fn are_declared(part: &Part) -> bool {
    let first_is_bare = part.words.first().is_some_and(|word| word.bare);
    // Only there bash takes an assignment for one word, whatever is computed in it.
    let direct = part.level == 0 && first_is_bare;
    let rest = match part.words.get(1..).unwrap_or_default() {
        [option, rest @ ..] if is(option, &["-r", "-x"]) => rest,
        rest => rest,
    };
    rest.iter().all(|word| {
        let name = name_length(&word.text);
        let named = name > 0 && !runs_later(&word.text[..name]);
        let value = word.text[name..].starts_with('=') && word.head > name;
        let one = word.shape <= Shape::One || direct && word.assigned().is_some();
        named && one && (value || word.fixed() && word.text.len() == name)
    })
}

fn is_plain_set(words: &[Word]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.fixed() {
            return word.is_operand() && !word.text.starts_with('+');
        }
        let Some(letters) = word.text.strip_prefix(['-', '+']) else { return true };
        if letters == "-" {
            return true;
        }
        let flags = letters.trim_start_matches(['e', 'u', 'f', 'x', 'v']);
        let mut named = || words.next().is_some_and(|name| is(name, &SHELL_OPTIONS));
        match flags {
            "" if !letters.is_empty() => {}
            "o" if named() => {}
            _ => return false,
        }
    }
    true
}
