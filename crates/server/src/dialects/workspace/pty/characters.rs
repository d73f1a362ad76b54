//! Bytes as text, where a character may be cut anywhere between two pieces.

/// Keeps the beginning of a character until the rest of it comes. What is no character at all is
/// shown as a terminal shows it: U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Characters {
    begun: Vec<u8>,
}

impl Characters {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let bytes = match self.begun.is_empty() {
            true => bytes,
            false => {
                joined = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
                &joined
            }
        };
        let mut text = String::with_capacity(bytes.len());
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            at += chunk.valid().len() + chunk.invalid().len();
            if chunk.invalid().is_empty() {
                continue;
            }
            let wrong = std::str::from_utf8(chunk.invalid());
            if at == bytes.len() && wrong.is_err_and(|error| error.error_len().is_none()) {
                self.begun = chunk.invalid().to_vec();
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// What was begun and will not be ended.
    pub(super) fn finish(&mut self) -> Option<char> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then_some(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WILD: &[u8] =
        b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xff\xe2\x82x\xc3(\xf0\x9f\x98z\xc3";

    fn whole() -> String {
        let mut characters = Characters::default();
        let mut text = characters.push(WILD);
        text.extend(characters.finish());
        text
    }

    #[test]
    fn the_text_is_the_same_wherever_it_is_cut() {
        assert_eq!(whole(), String::from_utf8_lossy(WILD));
        for size in 1..WILD.len() {
            let mut characters = Characters::default();
            let mut text: String = WILD.chunks(size).map(|piece| characters.push(piece)).collect();
            text.extend(characters.finish());
            assert_eq!(text, whole(), "pieces of {size}");
        }
    }

    #[test]
    fn who_looks_back_by_three_frames_knows_what_was_begun() {
        for size in 1..4 {
            let frames: Vec<&[u8]> = WILD.chunks(size).collect();
            for seen in 0..frames.len() {
                let mut before = Characters::default();
                frames[..seen].iter().for_each(|frame| drop(before.push(frame)));
                let mut again = Characters::default();
                let back = seen.saturating_sub(3);
                frames[back..seen].iter().for_each(|frame| drop(again.push(frame)));
                assert_eq!(again.begun, before.begun, "{seen} frames of {size}");
            }
        }
    }
}
