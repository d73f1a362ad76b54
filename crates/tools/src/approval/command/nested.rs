//! Scripts inside of words: substitutions, arithmetic, parameters, here-documents.

use super::list::Until;
use super::word::Shape;
use super::{Lost, Reader};

impl Reader<'_, '_> {
    /// A script up to its closing parenthesis; the opening one was read.
    pub(super) fn enclosed(&mut self) -> Result<(), Lost> {
        let outside = std::mem::take(&mut self.pending);
        self.held += outside.len();
        self.parentheses += 1;
        self.list(Until::Parenthesis)?;
        self.parentheses -= 1;
        self.held -= outside.len();
        if !self.pending.is_empty() {
            return self.lost("a here-document that begins behind its parenthesis");
        }
        self.pending = outside;
        Ok(())
    }

    pub(super) fn backquoted(&mut self, quoted: bool) -> Result<(), Lost> {
        self.at += 1;
        let mut script = Vec::new();
        loop {
            match self.peek() {
                None => return self.lost("a backquote is not closed"),
                Some(b'`') => break,
                Some(b'\\') => {
                    match self.bytes.get(self.at + 1) {
                        Some(byte @ (b'`' | b'\\' | b'$')) => script.push(*byte),
                        // In quotes it loses its backslash, in a here-document it does not.
                        Some(b'"') if quoted => {
                            return self.lost("an escaped quote between backquotes");
                        }
                        Some(b'\n') => return self.lost("a continued line between backquotes"),
                        Some(byte) => script.extend_from_slice(&[b'\\', *byte]),
                        None => {}
                    }
                    self.at += 2;
                }
                Some(byte) => {
                    if byte == b'\n' {
                        self.newline_inside()?;
                    }
                    script.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        let depth = self.depth;
        self.deeper(|reader| Reader::new(&script, depth + 1, reader.found)?.script())
    }

    /// `((…))`, at its first parenthesis, as bash tells it from parentheses within each other. False,
    /// and nothing is read, where it is none. Only numbers are known: of a name, bash evaluates the value,
    /// with the subscripts and thereby the substitutions in it.
    pub(super) fn arithmetic(&mut self) -> Result<bool, Lost> {
        if self.begins("(\\\n") {
            return self.lost("a line is continued between parentheses");
        }
        if !self.next_is(1, b'(') {
            return Ok(false);
        }
        let (mut open, mut end, mut numbers) = (1_usize, self.at + 2, true);
        while open > 0 {
            match self.bytes.get(end) {
                Some(b'(') => open += 1,
                Some(b')') => open -= 1,
                Some(b'0'..=b'9' | b' ' | b'\t') => {}
                Some(byte) if b"+-*/%<>=!&|^~?:,".contains(byte) => {}
                Some(byte) if byte.is_ascii_alphabetic() || b"_.;\n".contains(byte) => {
                    numbers = false
                }
                _ => return self.between_parentheses(),
            }
            end += 1;
        }
        self.found.spend(end - self.at);
        if self.bytes.get(end) != Some(&b')') {
            // Bash reads them a second time then, with the lines of a here-document as commands.
            let again = &self.bytes[self.at..end];
            return match again.windows(2).any(|pair| pair == b"<<") {
                true => self.lost("a here-document within double parentheses"),
                false => Ok(false),
            };
        }
        if !numbers {
            self.newline_inside()?;
            self.unknown("arithmetic with names");
        }
        self.at = end + 1;
        Ok(true)
    }

    /// What can be seen of double parentheses that are not understood.
    fn between_parentheses<T>(&mut self) -> Result<T, Lost> {
        let rest = &self.bytes[self.at + 2..];
        let depth = self.depth;
        self.unknown("arithmetic with names");
        self.deeper(|reader| Reader::new(rest, depth + 1, reader.found)?.expansions())?;
        Err(Lost)
    }

    /// What is computed in a text that is no script: of a here-document, or arithmetic.
    pub(super) fn expansions(&mut self) -> Result<(), Lost> {
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 2,
                b'$' | b'`' => drop(self.computed(&mut Vec::new(), true)?),
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// `${…}`, behind its brace: a name, its length, or a name with an operator that only cuts its value
    /// or puts another in its place. All others evaluate something or name another variable.
    pub(super) fn parameter(&mut self, quoted: bool) -> Result<Shape, Lost> {
        const OPERATORS: [&str; 12] =
            [":-", ":+", "-", "+", "##", "#", "%%", "%", "//", "/", "^^", ",,"];
        let computed = if quoted { Shape::One } else { Shape::Any };
        if self.peek() == Some(b'#') && !self.next_is(1, b'}') {
            self.at += 1;
            let before = self.at;
            self.skip_name();
            return match self.at > before && self.closes() {
                true => Ok(Shape::Number),
                false => self.lost("a parameter that is not understood"),
            };
        }
        match self.peek() {
            Some(b'@' | b'*') if self.next_is(1, b'}') => {
                self.at += 2;
                return Ok(Shape::Any);
            }
            Some(b'!') if self.next_is(1, b'}') => {
                self.at += 2;
                return Ok(computed);
            }
            Some(b'?' | b'$' | b'#') if self.next_is(1, b'}') => {
                self.at += 2;
                return Ok(Shape::Number);
            }
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => self.skip_name(),
            _ => return self.lost("a parameter that is not understood"),
        }
        if self.closes() {
            return Ok(computed);
        }
        let operator = OPERATORS.into_iter().find(|operator| self.begins(operator));
        let Some(operator) = operator else {
            return self.lost("a parameter that is not understood");
        };
        self.at += operator.len();
        self.deeper(|reader| reader.value_of_parameter(quoted)).map(|value| value.max(computed))
    }

    fn closes(&mut self) -> bool {
        let closes = self.peek() == Some(b'}');
        self.at += usize::from(closes);
        closes
    }

    /// Up to the closing brace; `"${x:-$@}"` is as many words as `"$@"`.
    fn value_of_parameter(&mut self, quoted: bool) -> Result<Shape, Lost> {
        let mut shape = Shape::Fixed;
        while !self.closes() {
            match self.peek() {
                Some(b'$') => shape = shape.max(self.computed(&mut Vec::new(), quoted)?),
                Some(b'<' | b'>') if self.next_is(1, b'(') => {
                    return self.lost("a substitution within a word");
                }
                Some(byte) if byte.is_ascii_alphanumeric() || b"_./*?:=@+,-#% ".contains(&byte) => {
                    self.at += 1;
                }
                _ => return self.lost("a parameter that is not understood"),
            }
        }
        Ok(shape)
    }
}
