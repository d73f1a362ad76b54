//! Redirections, and the texts of here-documents.

use super::unwrap::is_shell;
use super::{Lost, Part, Reader, Word, read_into};

pub(super) struct HereDocument {
    end: Vec<u8>,
    /// Nothing in it is computed.
    quoted: bool,
    tabs: bool,
    /// Of the parts that were found before its line.
    parts: usize,
}

impl<'s> Reader<'s, '_> {
    /// At its operator.
    pub(super) fn redirection(&mut self, part: &mut Part) -> Result<(), Lost> {
        const OPERATORS: [&str; 12] =
            ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];
        let operator = OPERATORS.into_iter().find(|operator| self.begins(operator));
        let Some(operator) = operator else { return self.lost("a redirection of no kind") };
        self.operator(operator.len())?;
        self.skip_blanks();
        if matches!(operator, "<<" | "<<-") {
            return self.announced(operator == "<<-");
        }
        let target = self.expect_word()?;
        let descriptor = target.fixed() && is_descriptor(&target.text);
        match operator {
            "<<<" => part.input = Some(target),
            "<&" | ">&" if descriptor => {}
            "<&" => return self.lost("a computed descriptor"),
            // Bash expands such a word twice, even in single quotes.
            ">&" if !target.fixed() || !is_plain(&target.text) => {
                return self.lost("a computed descriptor");
            }
            "<" => part.reads.push(target),
            "<>" => {
                part.reads.push(target.clone());
                part.writes.push(target);
            }
            _ => part.writes.push(target),
        }
        Ok(())
    }

    /// A here-document, at the word that ends it: letters and digits, bare or in quotes.
    fn announced(&mut self, tabs: bool) -> Result<(), Lost> {
        let (before, after) = match self.peek() {
            Some(b'\'') => (1, "'"),
            Some(b'"') => (1, "\""),
            Some(b'\\') => (1, ""),
            _ => (0, ""),
        };
        let rest = &self.bytes[(self.at + before).min(self.bytes.len())..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        let end = &rest[..length.count()];
        self.found.spend(end.len());
        let behind = &rest[end.len()..];
        let closed = behind.strip_prefix(after.as_bytes());
        let alone = closed.and_then(<[u8]>::first).is_none_or(|byte| super::list::ends_word(*byte));
        if end.is_empty() || closed.is_none() || !alone {
            return self.lost("a here-document with an odd end");
        }
        self.at += before + end.len() + after.len();
        let (quoted, parts) = (before > 0, self.found.parts.len());
        self.pending.push(HereDocument { end: end.to_vec(), quoted, tabs, parts });
        Ok(())
    }

    /// The texts of those that this line announced; it has just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), Lost> {
        if self.held > 0 {
            return self.lost("a here-document and a substitution of several lines");
        }
        for document in std::mem::take(&mut self.pending) {
            if self.found.steps.get() > super::MAX_STEPS {
                return self.lost("it takes too long to be looked through");
            }
            let text = self.here_document(&document)?;
            if !document.quoted {
                Reader::new(text, self.depth, self.found)?.expansions()?;
            }
            let parts = &self.found.parts[document.parts..];
            self.found.spend(parts.iter().map(|part| part.words.len()).sum());
            let for_shell = |part: &Part| part.words.iter().any(|word| is_shell(&word.text));
            if parts.iter().any(for_shell) {
                read_into(text, self.depth, self.found);
            }
        }
        Ok(())
    }

    fn here_document(&mut self, document: &HereDocument) -> Result<&'s [u8], Lost> {
        let start = self.at;
        while self.at < self.bytes.len() {
            let begin = self.at;
            let rest = &self.bytes[begin..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            self.found.spend(length);
            let mut line = &rest[..length];
            self.at = (begin + length + 1).min(self.bytes.len());
            while document.tabs && line.first() == Some(&b'\t') {
                line = &line[1..];
            }
            if line == document.end {
                return Ok(&self.bytes[start..begin]);
            }
            if self.parentheses > 0 && line.starts_with(&document.end) {
                return self.lost("the end of a here-document in a substitution");
            }
            if !document.quoted && line.ends_with(b"\\") {
                return self.lost("a continued line in a here-document");
            }
        }
        match self.parentheses {
            0 => Ok(&self.bytes[start..]),
            _ => self.lost("a here-document without its end"),
        }
    }

    /// Whether a here-document begins inside of a text of several lines is something shells disagree about.
    pub(super) fn newline_inside(&mut self) -> Result<(), Lost> {
        match self.pending.is_empty() && self.held == 0 {
            true => Ok(()),
            false => self.lost("a here-document and a text of several lines"),
        }
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./+-".contains(&byte))
}

fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl Part {
    /// The text that a shell would read as its script.
    pub(super) fn script_given(&self) -> Option<&Word> {
        self.input.as_ref().filter(|word| word.fixed())
    }
}
