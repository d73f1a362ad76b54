//! Output as a person would read it: without carriage returns and terminals' control sequences.

use crate::limits::MAX_SEQUENCE_CHARS;

/// Takes pieces as they come; a sequence may be cut anywhere between them.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    state: State,
    length: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// `ESC [ … letter`
    Control,
    /// `ESC ( B`
    Charset,
    /// `ESC ] … BEL` or `ESC ] … ESC \`
    Words,
}

impl Cleaner {
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let before = self.state;
            self.state = after(before, c);
            match (before, self.state) {
                (State::Text, State::Text) if c == '\r' => {}
                (State::Text, State::Text) => out.push(c),
                (_, State::Escape) => self.length = 0,
                _ => {
                    self.length += 1;
                    if self.length > MAX_SEQUENCE_CHARS {
                        self.state = State::Text;
                    }
                }
            }
        }
        out
    }
}

fn after(state: State, c: char) -> State {
    match (state, c) {
        // Wherever it stands, a new sequence begins: terminals give up the one before.
        (_, '\u{1b}') => State::Escape,
        (State::Text, _) => State::Text,
        (State::Escape, '[') => State::Control,
        (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Words,
        (State::Escape, ' '..='/') => State::Charset,
        (State::Escape | State::Charset, _) => State::Text,
        (State::Control, '\u{40}'..='\u{7e}') => State::Text,
        (State::Control, '\u{20}'..='\u{3f}') => State::Control,
        (State::Control, _) => State::Text,
        (State::Words, '\u{7}') => State::Text,
        (State::Words, _) => State::Words,
    }
}

/// Bytes as text, up to the last whole character.
pub(super) fn text(bytes: &[u8], truncated: bool) -> String {
    let cut = if truncated { unfinished_tail(bytes) } else { 0 };
    String::from_utf8_lossy(&bytes[..bytes.len() - cut]).into_owned()
}

/// How many bytes at the end are the beginning of a character.
fn unfinished_tail(bytes: &[u8]) -> usize {
    let begins = |length: &usize| bytes[bytes.len() - length] & 0b1100_0000 == 0b1100_0000;
    let tail = (1..=bytes.len().min(3)).find(begins).unwrap_or(0);
    let whole = std::str::from_utf8(&bytes[bytes.len() - tail..]);
    if whole.is_err_and(|error| error.error_len().is_none()) { tail } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WILD: &str =
        "a\r\nb\x1b[1;31mred\x1b[0m\x1b]0;title\x07c\x1b]8;;x\x1b\\link\x1b(B\rd\x1bMé\x1b[?25l\n";

    #[test]
    fn sequences_and_returns_go_wherever_the_pieces_are_cut() {
        let expected = "a\nbredclinkdé\n";
        for size in 1..WILD.chars().count() {
            let mut cleaner = Cleaner::default();
            let chars: Vec<char> = WILD.chars().collect();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let clean: String = pieces.map(|piece| cleaner.push(&piece)).collect();
            assert_eq!(clean, expected, "pieces of {size}");
        }
    }

    #[test]
    fn an_escape_within_a_sequence_begins_a_new_one() {
        for (wild, expected) in [
            ("a\x1b[\x1b[31mb", "ab"),
            ("a\x1b[1;\x1b[31mb", "ab"),
            ("a\x1b(\x1b[31mb", "ab"),
            ("a\x1b\x1b[31mb", "ab"),
            ("a\x1b]0;t\x1b[31mb", "ab"),
            ("a\x1b]0;t\x1b\\b", "ab"),
            ("a\x1b[31m[31mb", "a[31mb"),
        ] {
            assert_eq!(Cleaner::default().push(wild), expected, "{wild:?}");
        }
    }

    #[test]
    fn a_sequence_that_never_ends_does_not_swallow_everything() {
        let endless = format!("\x1b]{}end", "x".repeat(MAX_SEQUENCE_CHARS));
        assert!(Cleaner::default().push(&endless).ends_with("end"));
    }

    #[test]
    fn a_cut_character_is_left_out_and_binary_is_replaced() {
        assert_eq!(text("aé".as_bytes(), true), "aé");
        assert_eq!(text(&"aé".as_bytes()[..2], true), "a");
        assert_eq!(text(&"a€".as_bytes()[..3], true), "a");
        assert_eq!(text(b"a\xff\xfe", true), "a\u{fffd}\u{fffd}");
        assert_eq!(text(b"a\xc3", false), "a\u{fffd}");
    }
}
