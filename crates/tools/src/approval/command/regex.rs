//! What follows `=~`: the one place where bash reads parentheses as a part of a word.

use super::list::ends_word;
use super::{Lost, Reader};

impl Reader<'_, '_> {
    /// Only where no quote, no blank and no substitution is in it.
    pub(super) fn regular_expression(&mut self) -> Result<(), Lost> {
        self.skip_blanks();
        let (start, mut open) = (self.at, 0_usize);
        loop {
            match self.peek() {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b'|') if open > 0 => {}
                Some(b'$') if self.ends_expression() => {}
                Some(b'$') if open == 0 => {
                    self.computed(&mut Vec::new(), false)?;
                    continue;
                }
                Some(b'#') if self.at > start => {}
                Some(byte)
                    if byte.is_ascii_alphanumeric() || b"_.^*+?[]{}:,/@%=~!-".contains(&byte) => {}
                Some(b'\\')
                    if self.bytes.get(self.at + 1).is_some_and(|byte| byte.is_ascii_graphic()) =>
                {
                    self.at += 1;
                }
                Some(byte) if open == 0 && self.at > start && ends_word(byte) => break,
                _ => return self.lost("a regular expression of no kind"),
            }
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            b"]]" => self.lost("a regular expression is missing"),
            _ => Ok(()),
        }
    }

    /// A dollar sign that stands for the end.
    fn ends_expression(&self) -> bool {
        matches!(self.bytes.get(self.at + 1), Some(b' ' | b')' | b'|'))
    }
}
