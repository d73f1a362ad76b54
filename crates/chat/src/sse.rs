//! Server-sent events as a model's server writes them, read as hostile input.

use crate::error::ModelError;
use crate::limits::MAX_EVENT_BYTES;

/// What arrived of an event that is not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// The line before ended with a carriage return, of which a line feed is a part.
    after_return: bool,
}

impl Events {
    /// The data of every event that the piece makes whole.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, ModelError> {
        let mut whole = Vec::new();
        for &byte in piece {
            let is_second = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    whole.extend(self.end_line()?);
                }
                _ => {
                    if self.line.len() + self.data.len() >= MAX_EVENT_BYTES {
                        return Err(ModelError::TooLong("one event"));
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(whole)
    }

    fn end_line(&mut self) -> Result<Option<String>, ModelError> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return Ok(std::mem::take(&mut self.has_data).then_some(data));
        }
        let line = str::from_utf8(&line).map_err(|_| ModelError::Nonsense("it is not UTF-8"))?;
        let line = line.trim_start_matches('\u{feff}');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            if self.has_data {
                self.data.push('\n');
            }
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
            self.has_data = true;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_names_and_all_kinds_of_line_ends_are_understood() {
        let mut events = Events::default();
        let text =
            "\u{feff}: hi\r\nevent: x\r\ndata: a\r\ndata:b\r\n\r\nid: 1\n\ndata\n\ndata: c\r\r";
        assert_eq!(events.push(text.as_bytes()).unwrap(), ["a\nb", "", "c"]);
    }

    #[test]
    fn an_endless_line_is_given_up_and_one_below_the_limit_is_not() {
        let mut events = Events::default();
        assert!(events.push(&vec![b'x'; MAX_EVENT_BYTES]).is_ok());
        assert_eq!(events.push(b"x"), Err(ModelError::TooLong("one event")));
        let mut events = Events::default();
        let line = format!("data: {}\n", "x".repeat(MAX_EVENT_BYTES / 4));
        let pushed: Result<Vec<_>, _> = (0..8).map(|_| events.push(line.as_bytes())).collect();
        assert_eq!(pushed, Err(ModelError::TooLong("one event")));
    }

    proptest! {
        #[test]
        fn how_it_is_cut_changes_nothing(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()], 0..200,
        ), cut in 0usize..200) {
            let whole = Events::default().push(&bytes);
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut events = Events::default();
            let parts = events.push(first).and_then(|mut found| {
                found.extend(events.push(second)?);
                Ok(found)
            });
            prop_assert_eq!(whole, parts);
        }
    }
}
