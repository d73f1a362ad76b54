//! Which commands a shell script runs, as far as its text shows. Nothing is run or looked up here.
//!
//! Only what is fully understood is known: the forms that are written down here, each as bash reads it.
//! Everything else makes the script unknown, even where a good guess could be made, so it errs on one
//! side only: a command that bash would run is found, or the script has something unknown. What was
//! found before and beside that still counts. The parsers there are build a whole tree for running it,
//! and hostile text takes them exponential time or the stack.

mod builtins;
mod compound;
mod list;
mod nested;
mod redirection;
mod regex;
mod unwrap;
mod variables;
mod word;
mod wrappers;

pub(super) use unwrap::base;
pub(super) use word::{Shape, Word};

#[cfg(test)]
mod differential;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeSet;

use super::limits::{MAX_NESTING, MAX_PARTS, MAX_SCRIPT_BYTES, MAX_STEPS, MAX_WORDS};

/// What a script consists of.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) parts: Vec<Part>,
    /// Why it may do more than its parts say.
    pub(super) unknown: BTreeSet<&'static str>,
    /// Words of all parts.
    words: usize,
    /// How many bytes and words were looked at, however often.
    steps: Cell<usize>,
}

/// One program and its arguments.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) words: Vec<Word>,
    /// Variables are set for it, or for all that follows.
    pub(super) assigns: bool,
    /// Files that its output goes to, and that its input comes from.
    pub(super) writes: Vec<Word>,
    pub(super) reads: Vec<Word>,
    /// Its input, where that stands in the script.
    input: Option<Word>,
    /// How many commands it was taken out of.
    level: usize,
}

impl Part {
    /// It changes where relative paths lead to.
    pub(super) fn moves(&self) -> bool {
        let mut words = self.words.iter();
        let name = words.next().map_or("", |word| base(&word.text));
        let mut goes = |short: &str| {
            words.any(|word| {
                let text = word.text.as_str();
                let long = text.strip_prefix("--");
                long.is_some_and(|long| long.starts_with("chdir") || long.starts_with("directory"))
                    || long.is_none() && text.starts_with(short)
            })
        };
        match name {
            "cd" | "pushd" | "popd" | "chroot" => true,
            "env" | "git" | "make" | "tar" => goes("-C"),
            "sudo" => goes("-D"),
            "find" => goes("-execdir"),
            _ => false,
        }
    }

    fn is_empty(&self) -> bool {
        let files = self.writes.len() + self.reads.len();
        self.words.is_empty() && !self.assigns && files == 0 && self.input.is_none()
    }
}

impl Script {
    fn spend(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Asked before anything is copied.
    fn has_room(&mut self, words: usize) -> bool {
        let fits = self.parts.len() < MAX_PARTS && self.words + words <= MAX_WORDS;
        if !fits {
            self.unknown.insert("it has too many commands to be looked through");
        }
        fits
    }

    fn add(&mut self, part: Part) {
        self.words += part.words.len() + part.reads.len() + part.writes.len();
        self.parts.push(part);
    }
}

/// Nothing behind this place can be told.
#[derive(Debug)]
struct Lost;

pub(super) fn read(script: &str) -> Script {
    let mut found = Script::default();
    if script.len() > MAX_SCRIPT_BYTES {
        found.unknown.insert("it is too long to be looked through");
        return found;
    }
    read_into(script.as_bytes(), 0, &mut found);
    unwrap::all(&mut found);
    found
}

/// A script within a script.
fn read_into(script: &[u8], depth: usize, found: &mut Script) {
    // Lost says why, in what is found.
    let _ = Reader::new(script, depth, found).and_then(|mut reader| reader.script());
}

struct Reader<'s, 'f> {
    bytes: &'s [u8],
    at: usize,
    depth: usize,
    /// Parentheses that are open around this place.
    parentheses: usize,
    /// Here-documents whose text begins behind the end of this line.
    pending: Vec<redirection::HereDocument>,
    /// Those that were announced outside of the parentheses.
    held: usize,
    found: &'f mut Script,
}

impl<'s, 'f> Reader<'s, 'f> {
    fn new(bytes: &'s [u8], depth: usize, found: &'f mut Script) -> Result<Self, Lost> {
        found.spend(bytes.len());
        // Bash uses some of them for purposes of its own.
        let odd =
            bytes.iter().any(|byte| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t'));
        let pending = Vec::new();
        let mut reader = Self { bytes, at: 0, depth, parentheses: 0, pending, held: 0, found };
        match odd {
            true => reader.lost("a control character"),
            false => reader.deeper(|_| Ok(())).map(|()| reader),
        }
    }

    /// One level further in, where that is allowed.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Lost>) -> Result<T, Lost> {
        if self.depth >= MAX_NESTING {
            return self.lost("it is nested too deeply");
        }
        if self.found.steps.get() > MAX_STEPS {
            return self.lost("it takes too long to be looked through");
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn peek(&self) -> Option<u8> {
        self.found.spend(1);
        self.bytes.get(self.at).copied()
    }

    fn next_is(&self, offset: usize, byte: u8) -> bool {
        self.bytes.get(self.at + offset) == Some(&byte)
    }

    fn begins(&self, text: &str) -> bool {
        self.bytes[self.at.min(self.bytes.len())..].starts_with(text.as_bytes())
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.next_is(1, b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Over an operator that a continued line could make another one of.
    fn operator(&mut self, length: usize) -> Result<(), Lost> {
        self.at += length;
        match self.begins("\\\n") {
            true => self.lost("a line is continued within an operator"),
            false => Ok(()),
        }
    }

    fn unknown(&mut self, why: &'static str) {
        self.found.unknown.insert(why);
    }

    fn lost<T>(&mut self, why: &'static str) -> Result<T, Lost> {
        self.unknown(why);
        Err(Lost)
    }

    fn add(&mut self, part: Part) -> Result<(), Lost> {
        let words = part.words.len() + part.reads.len() + part.writes.len();
        if !self.found.has_room(words) {
            return Err(Lost);
        }
        self.found.add(part);
        Ok(())
    }
}
