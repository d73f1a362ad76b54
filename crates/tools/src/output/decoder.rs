//! Bytes as they come become text: a character is never cut, and what is none becomes U+FFFD.

/// Of one stream.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character whose rest is still to come.
    pending: Vec<u8>,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(self.pending.len() + bytes.len());
        let joined;
        let mut rest = if self.pending.is_empty() {
            bytes
        } else {
            let mut all = std::mem::take(&mut self.pending);
            all.extend_from_slice(bytes);
            joined = all;
            &joined
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(whole) => {
                    text.push_str(whole);
                    return text;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(good));
                    let Some(length) = error.error_len() else {
                        self.pending = bad.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
    }

    /// At the end of the stream: a character that is not whole never will be.
    pub(crate) fn finish(&mut self) -> Option<char> {
        let cut = !std::mem::take(&mut self.pending).is_empty();
        cut.then_some(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8], cuts: &[usize]) -> String {
        let (mut decoder, mut text, mut rest) = (Decoder::default(), String::new(), bytes);
        for cut in cuts {
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            text.push_str(&decoder.push(piece));
            rest = after;
        }
        text.push_str(&decoder.push(rest));
        text.extend(decoder.finish());
        text
    }

    proptest! {
        #[test]
        fn however_it_is_cut_text_comes_out_whole(text in ".{0,200}", cuts in prop::collection::vec(0usize..5, 0..100)) {
            prop_assert_eq!(decoded(text.as_bytes(), &cuts), text);
        }

        #[test]
        fn however_it_is_cut_bytes_are_replaced_as_at_once(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(0usize..4, 0..100)) {
            prop_assert_eq!(decoded(&bytes, &cuts), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
