//! Lists of commands: operators, simple commands, and where each of them ends.

use super::word::is_function_name;
use super::{Lost, Part, Reader, variables};

/// What ends a list.
#[derive(Clone, Copy)]
pub(super) enum Until {
    End,
    Parenthesis,
    Words(&'static [&'static str]),
    /// `;;` and its like, or `esac`.
    Clause,
}

/// Words of the shell's own, where a command can begin.
const RESERVED: [&str; 20] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "case",
    "esac", "function", "{", "}", "!", "[[", "time", "coproc",
];

/// Behind these, `name[…]=` and `name=(…)` are assignments, too.
const DECLARING: [&str; 8] =
    ["alias", "declare", "typeset", "local", "export", "readonly", "let", "eval"];

impl Reader<'_, '_> {
    pub(super) fn script(&mut self) -> Result<(), Lost> {
        self.list(Until::End).map(drop)
    }

    /// What ended it, which is read, too.
    pub(super) fn list(&mut self, until: Until) -> Result<&'static str, Lost> {
        self.deeper(|reader| {
            loop {
                reader.skip_lines()?;
                if let Some(stop) = reader.stop(until)? {
                    return Ok(stop);
                }
                reader.chain()?;
                reader.separator(until)?;
            }
        })
    }

    fn stop(&mut self, until: Until) -> Result<Option<&'static str>, Lost> {
        let clause = || [";;&", ";;", ";&"].into_iter().find(|end| self.begins(end));
        match (self.peek(), until) {
            (None, Until::End) => return Ok(Some("")),
            (None, _) => return self.lost("something is not closed"),
            (Some(b')'), Until::Parenthesis) => {
                self.at += 1;
                return Ok(Some(")"));
            }
            (Some(b')'), _) => return self.lost("a parenthesis is closed that was not opened"),
            (Some(b';'), Until::Clause) => {
                let Some(end) = clause() else { return self.lost("a command is missing") };
                self.operator(end.len())?;
                return Ok(Some(end));
            }
            _ => {}
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        let ends = match until {
            Until::Words(words) => words.contains(&word),
            Until::Clause => word == "esac",
            _ => false,
        };
        if ends {
            self.at += word.len();
        }
        Ok(ends.then_some(word))
    }

    /// The word of the shell's own that stands here.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let rest = &self.bytes[self.at..];
        let stands = |word: &&str| {
            let behind = rest.get(word.len());
            rest.starts_with(word.as_bytes()) && behind.is_none_or(|byte| ends_word(*byte))
        };
        RESERVED.into_iter().find(stands)
    }

    /// Commands up to where a list goes on or ends.
    fn chain(&mut self) -> Result<(), Lost> {
        loop {
            self.command()?;
            self.skip_blanks();
            if self.begins("&&") || self.begins("||") || self.begins("|&") {
                self.at += 2;
            } else if self.peek() == Some(b'|') {
                self.operator(1)?;
            } else {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn separator(&mut self, until: Until) -> Result<(), Lost> {
        self.skip_blanks();
        match self.peek() {
            None | Some(b'\n' | b')' | b'#') => Ok(()),
            Some(b';') if self.next_is(1, b';') || self.next_is(1, b'&') => match until {
                Until::Clause => Ok(()),
                _ => self.lost("the end of a case that did not begin"),
            },
            Some(b';') => self.operator(1),
            Some(b'&') => self.operator(1),
            // `(a) then`: only the end of a list may follow directly.
            Some(_) => match self.reserved() {
                Some(_) => Ok(()),
                None => self.lost("a command directly behind another"),
            },
        }
    }

    pub(super) fn command(&mut self) -> Result<(), Lost> {
        if self.found.steps.get() > super::MAX_STEPS {
            return self.lost("it takes too long to be looked through");
        }
        match (self.reserved(), self.peek()) {
            (Some(word), _) => self.deeper(|reader| reader.compound(word)),
            (None, Some(b'(')) => self.deeper(Self::parenthesis),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> Result<(), Lost> {
        let mut part = Part::default();
        let mut begun = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'#') => self.comment(),
                Some(b'&') if self.begins("&\\\n") => return self.operator(1),
                Some(b'&') if !self.next_is(1, b'>') => break,
                Some(b'&') => self.redirection(&mut part)?,
                Some(b'<' | b'>') if !self.next_is(1, b'(') => self.redirection(&mut part)?,
                Some(b'(') => return self.function(&part),
                Some(_) => self.word_of(&mut part)?,
            }
            begun = true;
        }
        match begun {
            true if part.is_empty() => Ok(()),
            true => self.add(part),
            false => self.lost("a command is missing"),
        }
    }

    fn word_of(&mut self, part: &mut Part) -> Result<(), Lost> {
        let word = self.word()?;
        if matches!(self.peek(), Some(b'<' | b'>')) && word.bare {
            if word.text.bytes().all(|byte| byte.is_ascii_digit()) {
                // The number of a descriptor, whose redirection follows.
                return self.redirection(part);
            }
            if word.text.starts_with('{') && word.text.ends_with('}') {
                return self.lost("a variable for a descriptor");
            }
        }
        let first = part.words.first();
        let declares = first.is_some_and(|first| DECLARING.contains(&first.text.as_str()));
        if (first.is_none() || declares) && word.subscripted {
            return self.lost("a subscript");
        }
        let array = self.peek() == Some(b'(') && word.text.ends_with('=');
        if array && (first.is_none() || declares) && word.assigned().is_some() {
            self.at += 1;
            self.unknown("an array");
            self.words_of_array()?;
        }
        if first.is_some() {
            part.words.push(word);
            return Ok(());
        }
        if let Some(name) = word.assigned() {
            part.assigns = true;
            if variables::runs_later(name) {
                self.unknown("a variable that is run later");
            }
            return Ok(());
        }
        if word.bare && RESERVED.contains(&word.text.as_str()) && part.is_empty() {
            return self.lost("a word of the shell's own that is continued on the next line");
        }
        part.words.push(word);
        Ok(())
    }

    /// Up to the closing parenthesis. Bash leaves an array that has anything but words and goes on behind the
    /// end of that line, so nothing else is taken for a part of it.
    fn words_of_array(&mut self) -> Result<(), Lost> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(());
                }
                None | Some(b'\n' | b'(' | b';' | b'&' | b'|' | b'#' | b'[') => {
                    return self.lost("an array of no kind");
                }
                Some(b'<' | b'>') if !self.next_is(1, b'(') => {
                    return self.lost("an array of no kind");
                }
                Some(_) => drop(self.word()?),
            }
        }
    }

    /// `name ()`, at its parenthesis.
    fn function(&mut self, part: &Part) -> Result<(), Lost> {
        self.operator(1)?;
        self.skip_blanks();
        let named = match part.words.as_slice() {
            [name] => {
                let named = name.bare && is_function_name(&name.text);
                named && !part.assigns && self.peek() == Some(b')')
            }
            _ => false,
        };
        if !named || part.writes.len() + part.reads.len() > 0 || part.input.is_some() {
            return self.lost("a parenthesis in a word");
        }
        self.at += 1;
        self.body()
    }

    /// Of a function.
    pub(super) fn body(&mut self) -> Result<(), Lost> {
        self.skip_lines()?;
        match (self.reserved(), self.peek()) {
            (Some("{"), _) | (None, Some(b'(')) => self.command(),
            _ => self.lost("a function of no kind"),
        }
    }

    pub(super) fn comment(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.found.spend(length);
        self.at += length;
    }

    /// Blanks, ends of lines with the here-documents behind them, and comments.
    pub(super) fn skip_lines(&mut self) -> Result<(), Lost> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'#') => self.comment(),
                Some(b'\n') => {
                    self.at += 1;
                    self.here_documents()?;
                }
                _ => return Ok(()),
            }
        }
    }
}

pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}
