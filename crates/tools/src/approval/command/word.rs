//! Words: quotes, and what is computed in them.

use super::list::ends_word;
use super::variables::name_length;
use super::{Lost, Reader};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::approval) struct Word {
    /// Without quotes; what is computed is left out.
    pub(in crate::approval) text: String,
    pub(super) shape: Shape,
    /// Written without quotes, so that it may be a word of the shell's own.
    pub(super) bare: bool,
    /// How much of the text stands before everything that is computed.
    pub(super) head: usize,
    /// How much of it stands before everything that is quoted or computed.
    plain: usize,
    /// A name with a bracket behind it.
    pub(super) subscripted: bool,
    /// `$!` alone, which is a number or, without quotes, no word.
    of_job: bool,
}

/// What the program gets of a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::approval) enum Shape {
    /// Its text, however the script is run.
    #[default]
    Fixed,
    /// One word in which only digits are left open.
    Number,
    /// One word.
    One,
    /// One word or more, each of which begins with the head.
    Several,
    /// None, one or more, of whatever kind.
    Any,
}

impl Word {
    /// Nothing is known of it.
    pub(super) fn computed() -> Self {
        Self { shape: Shape::Any, ..Self::default() }
    }

    /// One word of which the beginning is known.
    pub(super) fn one(head: &str) -> Self {
        Self { text: head.to_owned(), head: head.len(), shape: Shape::One, ..Self::default() }
    }

    /// Digits and nothing else, whatever they are, or no word.
    pub(in crate::approval) fn is_number(&self) -> bool {
        self.shape == Shape::Number && self.text.is_empty() || self.of_job
    }

    pub(in crate::approval) fn fixed(&self) -> bool {
        self.shape == Shape::Fixed
    }

    /// It is one word, or begins so that it cannot be an option.
    pub(super) fn is_operand(&self) -> bool {
        self.shape != Shape::Any && self.head > 0 && !self.text.starts_with('-')
    }

    /// The name of the variable that it sets where commands begin.
    pub(super) fn assigned(&self) -> Option<&str> {
        let name = name_length(&self.text);
        let rest = &self.text[name..];
        let sign = if rest.starts_with("+=") { 2 } else { usize::from(rest.starts_with('=')) };
        (name > 0 && sign > 0 && self.plain >= name + sign).then(|| &self.text[..name])
    }
}

/// A word as far as it was read.
struct Draft {
    text: Vec<u8>,
    shape: Shape,
    bare: bool,
    head: Option<usize>,
    plain: Option<usize>,
}

impl Draft {
    fn new() -> Self {
        Self { text: Vec::new(), shape: Shape::Fixed, bare: true, head: None, plain: None }
    }

    fn quoted(&mut self) {
        self.bare = false;
        self.plain.get_or_insert(self.text.len());
    }

    fn becomes(&mut self, shape: Shape, from: usize) {
        if shape > Shape::Fixed {
            self.shape = self.shape.max(shape);
            self.head.get_or_insert(from);
        }
    }

    /// Before a character that only means something at the beginning of a path.
    fn begins_path(&self) -> bool {
        matches!(self.text.last(), None | Some(b'=' | b':'))
    }

    fn word(self) -> Word {
        let (head, plain) = (self.head, self.plain);
        let end = self.text.len();
        // It only ever is cut between ASCII characters.
        let text = String::from_utf8_lossy(&self.text).into_owned();
        let mut word = Word {
            head: head.unwrap_or(end).min(text.len()),
            plain: plain.unwrap_or(end).min(head.unwrap_or(end)).min(text.len()),
            text,
            shape: self.shape,
            bare: self.bare,
            subscripted: false,
            of_job: false,
        };
        let name = name_length(&word.text);
        word.subscripted = name > 0 && word.text[name..].starts_with('[') && word.plain >= name;
        word
    }
}

impl Reader<'_, '_> {
    /// The word that begins here; it may be empty where none does.
    pub(super) fn word(&mut self) -> Result<Word, Lost> {
        let (start, mut draft) = (self.at, Draft::new());
        let (mut brace, mut several) = (None, false);
        while let Some(byte) = self.peek() {
            let before = draft.text.len();
            match byte {
                b'<' | b'>' if self.next_is(1, b'(') => {
                    if self.at > start {
                        return self.lost("a substitution within a word");
                    }
                    self.operator(2)?;
                    self.enclosed()?;
                    draft.quoted();
                    draft.becomes(Shape::One, before);
                    if self.peek().is_some_and(|byte| !ends_word(byte)) {
                        return self.lost("a substitution within a word");
                    }
                    continue;
                }
                byte if ends_word(byte) => break,
                b'\\' if self.next_is(1, b'\n') => {
                    self.at += 2;
                    continue;
                }
                b'\\' => {
                    draft.quoted();
                    self.at += 1;
                    let Some(escaped) = self.peek() else {
                        return self.lost("nothing is behind a backslash");
                    };
                    draft.text.push(escaped);
                }
                b'\'' => {
                    draft.quoted();
                    self.single_quoted(&mut draft.text)?;
                    continue;
                }
                b'"' => {
                    draft.quoted();
                    let (shape, head) = self.double_quoted(&mut draft.text)?;
                    draft.becomes(shape, head);
                    continue;
                }
                b'$' | b'`' => {
                    draft.quoted();
                    let shape = self.computed(&mut draft.text, false)?;
                    draft.becomes(shape, before);
                    continue;
                }
                _ => {
                    match byte {
                        b'*' | b'?' | b'[' => draft.becomes(Shape::Several, before),
                        b'~' if draft.begins_path() => draft.becomes(Shape::One, before),
                        b'{' => brace = brace.or(Some(before)),
                        b',' => several = true,
                        b'.' => several |= draft.text.last() == Some(&b'.'),
                        _ => {}
                    }
                    draft.text.push(byte);
                }
            }
            self.at += 1;
        }
        if let (Some(from), true) = (brace, several) {
            draft.head = draft.head.map(|head| head.min(from));
            draft.becomes(Shape::Several, from);
        }
        let mut word = draft.word();
        word.of_job = matches!(&self.bytes[start..self.at], b"$!" | b"${!}");
        if word.bare && matches!(word.text.as_str(), "[" | "[[") {
            (word.shape, word.head) = (Shape::Fixed, word.text.len());
        }
        Ok(word)
    }

    pub(super) fn single_quoted(&mut self, text: &mut Vec<u8>) -> Result<(), Lost> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return self.lost("a quote is not closed"),
                Some(b'\'') => break,
                Some(byte) => {
                    if byte == b'\n' {
                        self.newline_inside()?;
                    }
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    /// What it becomes, and how long the text was before anything that is computed.
    pub(super) fn double_quoted(&mut self, text: &mut Vec<u8>) -> Result<(Shape, usize), Lost> {
        self.at += 1;
        let (mut shape, mut head) = (Shape::Fixed, None);
        loop {
            match self.peek() {
                None => return self.lost("a quote is not closed"),
                Some(b'"') => break,
                Some(b'\\') => {
                    match self.bytes.get(self.at + 1) {
                        Some(b'\n') => self.newline_inside()?,
                        Some(escaped @ (b'$' | b'`' | b'"' | b'\\')) => text.push(*escaped),
                        Some(other) => text.extend_from_slice(&[b'\\', *other]),
                        None => {}
                    }
                    self.at += 2;
                }
                Some(b'$' | b'`') => {
                    let before = text.len();
                    let found = self.computed(text, true)?;
                    if found > Shape::Fixed {
                        shape = shape.max(found);
                        head.get_or_insert(before);
                    }
                }
                Some(byte) => {
                    if byte == b'\n' {
                        self.newline_inside()?;
                    }
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok((shape, head.unwrap_or(text.len())))
    }

    /// What begins with a dollar sign or a backquote.
    pub(super) fn computed(&mut self, text: &mut Vec<u8>, quoted: bool) -> Result<Shape, Lost> {
        let computed = if quoted { Shape::One } else { Shape::Any };
        if self.peek() == Some(b'`') {
            self.backquoted(quoted)?;
            return Ok(computed);
        }
        self.at += 1;
        match self.peek() {
            Some(b'\\') if self.next_is(1, b'\n') => self.lost("a line is continued behind a $"),
            Some(b'(') => {
                if self.arithmetic()? {
                    return Ok(Shape::Number);
                }
                self.operator(1)?;
                self.enclosed()?;
                Ok(computed)
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(quoted)
            }
            Some(b'[') => self.lost("arithmetic of an old kind"),
            Some(b'\'') if !quoted => self.escaped(text),
            Some(b'"') if !quoted => {
                // It may be translated.
                self.double_quoted(text).map(|(shape, _)| shape.max(Shape::One))
            }
            Some(b'#' | b'?' | b'$') => {
                self.at += 1;
                Ok(Shape::Number)
            }
            Some(b'@' | b'*') => {
                self.at += 1;
                Ok(Shape::Any)
            }
            Some(b'!' | b'-' | b'0'..=b'9') => {
                self.at += 1;
                Ok(computed)
            }
            Some(first) if first.is_ascii_alphabetic() || first == b'_' => {
                self.skip_name();
                Ok(computed)
            }
            _ => {
                text.push(b'$');
                Ok(Shape::Fixed)
            }
        }
    }

    pub(super) fn skip_name(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
    }

    /// `$'…'`; known only where nothing in it is escaped.
    fn escaped(&mut self, text: &mut Vec<u8>) -> Result<Shape, Lost> {
        self.at += 1;
        let mut shape = Shape::Fixed;
        loop {
            match self.peek() {
                None => return self.lost("a quote is not closed"),
                Some(b'\'') => break,
                Some(b'\\') => {
                    shape = Shape::One;
                    self.at += 2;
                }
                Some(byte) => {
                    if byte == b'\n' {
                        self.newline_inside()?;
                    }
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(shape)
    }
}

/// Of the usual kind; bash takes nearly everything.
pub(super) fn is_function_name(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(usual)
}
