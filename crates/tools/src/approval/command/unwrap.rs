//! What a command runs beside itself: `bash -c`, `env`, `sudo`, `xargs`, `find -exec` and their like.

use super::wrappers::{self, Inner};
use super::{Part, Script, Shape, Word, builtins, read_into};
use crate::approval::limits::{MAX_LEVELS, MAX_REPLACED, MAX_STEPS};

const SHELLS: [&str; 20] = [
    "bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish", "csh", "tcsh", "hush",
    "yash", "ksh93", "lksh", "posh", "pwsh", "nu", "elvish", "xonsh",
];

/// These read nearly as bash does; what they read otherwise begins with one of [`BASH_ONLY`].
const POSIX_SHELLS: [&str; 3] = ["sh", "dash", "ash"];
const BASH_ONLY: [&str; 10] = ["[[", "((", "$'", "$\"", "<(", ">(", "&>", "<<<", "|&", ";&"];

pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&base(program))
}

/// The last name of a path.
pub(in crate::approval) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Adds what the parts run, and what these run.
pub(super) fn all(found: &mut Script) {
    let mut at = 0;
    while at < found.parts.len() {
        let part = std::mem::take(&mut found.parts[at]);
        let before = found.parts.len();
        found.spend(part.words.len());
        if part.level >= MAX_LEVELS {
            found.unknown.insert("commands that run commands that run commands");
        } else if found.steps.get() > MAX_STEPS {
            found.unknown.insert("it takes too long to be looked through");
        } else {
            one(&part, found);
        }
        for added in &mut found.parts[before..] {
            added.level = part.level + 1;
            // The variables of whoever runs it are its variables.
            added.assigns |= part.assigns;
        }
        found.parts[at] = part;
        at += 1;
    }
}

fn one(part: &Part, found: &mut Script) {
    let Some(program) = part.words.first() else { return };
    if !program.fixed() {
        found.unknown.insert("the name of a program is computed");
        return;
    }
    let name = base(&program.text);
    if is_shell(name) {
        return shell(part, found);
    }
    found.unknown.extend(builtins::evaluates(name, part));
    let arguments = &part.words[1..];
    match name {
        "eval" => evaluated(arguments, found),
        "trap" => trapped(arguments, found),
        "find" => executed_by_find(arguments, found),
        "command" if arguments.first().is_some_and(only_looks) => {}
        name if wrappers::is_opaque(name) => {
            found.unknown.insert("a program that runs what cannot be seen here");
        }
        name => wrapped(name, part, found),
    }
}

/// `command -v`.
fn only_looks(option: &Word) -> bool {
    option.fixed() && matches!(option.text.as_str(), "-v" | "-V")
}

fn wrapped(name: &str, part: &Part, found: &mut Script) {
    let Some(wrapper) = wrappers::find(name) else { return };
    match wrapper.inner(&part.words) {
        Inner::At { at, odd } => {
            if odd {
                found.unknown.insert("a variable that is run later");
            }
            let open = match name {
                "xargs" => replaced_by_xargs(&part.words[1..at]),
                _ => Vec::new(),
            };
            if open.len() > MAX_REPLACED {
                found.unknown.insert("an option before a program");
                return;
            }
            let more = (name == "xargs").then(Word::computed);
            inner(&part.words[at..], &open, more, part.script_given(), found);
        }
        Inner::Nothing => {}
        Inner::Unsure => {
            found.unknown.insert("an option before a program");
        }
    }
}

/// What words are looked for, to be replaced: with whatever could be such an option.
fn replaced_by_xargs(options: &[Word]) -> Vec<&str> {
    let mut marks = Vec::new();
    for (index, option) in options.iter().enumerate() {
        let Some((_, inline)) = option.text.split_once('I') else { continue };
        let next = options.get(index + 1).map_or("", |word| word.text.as_str());
        if option.text.starts_with('-') {
            marks.push(if inline.is_empty() { next } else { inline });
        }
    }
    marks
}

/// `open`: words that have one of these are computed.
fn inner(
    words: &[Word],
    open: &[&str],
    more: Option<Word>,
    input: Option<&Word>,
    found: &mut Script,
) {
    if !found.has_room(words.len() + 1) {
        return;
    }
    found.spend(words.iter().map(|word| word.text.len() * (open.len() + 1)).sum());
    let close = |word: &Word| {
        let at = open.iter().filter_map(|mark| word.text.find(mark)).min();
        at.map_or_else(|| word.clone(), |at| Word::one(&word.text[..at]))
    };
    let words = words.iter().map(close).chain(more).collect();
    // Variables may be set by it, too.
    found.add(Part { words, assigns: true, input: input.cloned(), ..Part::default() });
}

/// Words that are joined and then run.
fn evaluated(words: &[Word], found: &mut Script) {
    let words = match words.split_first() {
        Some((dashes, rest)) if dashes.fixed() && dashes.text == "--" => rest,
        Some((option, _)) if option.text.starts_with('-') => {
            found.unknown.insert("an option before a script");
            words
        }
        _ => words,
    };
    if words.iter().any(|word| !word.fixed()) {
        found.unknown.insert("a computed script");
        return;
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    read_into(text.join(" ").as_bytes(), 0, found);
}

fn trapped(words: &[Word], found: &mut Script) {
    let script = match words {
        [dashes, script, ..] if dashes.fixed() && dashes.text == "--" => script,
        [first, ..] => first,
        [] => return,
    };
    if !script.fixed() {
        found.unknown.insert("a computed script");
    } else if words[0].text != "--" && script.text.starts_with('-') {
        // To list or to reset.
        if !matches!(script.text.as_str(), "-" | "-p" | "-l") {
            found.unknown.insert("an option before a script");
        }
    } else {
        read_into(script.text.as_bytes(), 0, found);
    }
}

fn shell(part: &Part, found: &mut Script) {
    let arguments = &part.words[1..];
    let (mut at, mut command) = (0, false);
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        if word.fixed() && !text.starts_with(['-', '+']) || word.is_operand() {
            break;
        }
        at += 1;
        if word.fixed() && text == "--" {
            break;
        }
        match option_of_shell(word, &arguments[at.min(arguments.len())..]) {
            Some((names, script)) => {
                at += names;
                command |= script;
            }
            None => {
                found.unknown.insert("an option of a shell");
            }
        }
    }
    match arguments.get(at) {
        Some(word) if command && word.fixed() => {
            if !reads_like_bash(&part.words[0].text, &word.text) {
                found.unknown.insert("a script for a shell that is not bash");
            }
            read_into(word.text.as_bytes(), 0, found);
        }
        Some(_) if command => {
            found.unknown.insert("a computed script");
        }
        _ => {
            found.unknown.insert("a shell that reads its script from elsewhere");
            if let Some(script) = part.script_given() {
                read_into(script.text.as_bytes(), 0, found);
            }
        }
    }
}

/// How many names of options follow it, and whether a script does.
fn option_of_shell(word: &Word, rest: &[Word]) -> Option<(usize, bool)> {
    const NAMES: [&str; 6] = ["pipefail", "errexit", "nounset", "xtrace", "noglob", "verbose"];
    if !word.fixed() {
        return None;
    }
    if matches!(word.text.as_str(), "--login" | "--norc" | "--noprofile") {
        return Some((0, false));
    }
    let letters = word.text.strip_prefix('-').filter(|letters| !letters.is_empty())?;
    let known = letters.bytes().all(|letter| b"ceuxlvfo".contains(&letter));
    let names = letters.matches('o').count();
    let named = rest.get(..names)?;
    let named = named.iter().all(|name| name.fixed() && NAMES.contains(&name.text.as_str()));
    (known && named).then(|| (names, letters.contains('c')))
}

fn reads_like_bash(shell: &str, script: &str) -> bool {
    match base(shell) {
        "bash" => true,
        shell => {
            POSIX_SHELLS.contains(&shell) && !BASH_ONLY.iter().any(|mark| script.contains(mark))
        }
    }
}

const EXECUTES: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

fn executed_by_find(words: &[Word], found: &mut Script) {
    let unsure = "an option before a program";
    let is = |word: &Word, texts: &[&str]| word.fixed() && texts.contains(&word.text.as_str());
    // Words that may be an option, and all that run something.
    let (mut open, mut ends, mut at) = (0, 0, 0);
    while let Some(word) = words.get(at) {
        at += 1;
        if !is(word, &EXECUTES) {
            let single = word.shape == Shape::One;
            open += if word.fixed() || word.is_operand() { 0 } else { 1 + usize::from(!single) };
            ends += usize::from(is(word, &[";"]));
            continue;
        }
        let rest = &words[at..];
        let ends_here = |(index, word): (usize, &Word)| {
            is(word, &[";"]) || is(word, &["+"]) && index > 0 && is(&rest[index - 1], &["{}"])
        };
        let Some(end) = rest.iter().enumerate().position(ends_here) else {
            found.unknown.insert(unsure);
            return;
        };
        let command = &rest[..end];
        let computed = command.iter().any(|word| !word.fixed() && !word.is_operand());
        if command.iter().any(|word| word.shape == Shape::Any)
            || computed && command.iter().any(|word| is(word, &EXECUTES))
        {
            found.unknown.insert(unsure);
        }
        match command {
            [] => {}
            // As many words as there are files.
            [command @ .., _] if is(&rest[end], &["+"]) => {
                inner(command, &["{}"], Some(Word::computed()), None, found);
            }
            command => inner(command, &["{}"], None, None, found),
        }
        at += end + 1;
        ends += 1;
    }
    // One word alone cannot be an option that runs something as well as the end of that.
    if open > 1 || open == 1 && ends > 0 {
        found.unknown.insert(unsure);
    }
}
