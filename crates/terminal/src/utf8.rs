//! Bytes as characters, however they are cut.

/// The beginning of a character whose rest has not come.
#[derive(Default)]
pub(crate) struct Utf8 {
    begun: [u8; 4],
    count: usize,
}

impl Utf8 {
    pub(crate) fn begun(&self) -> &[u8] {
        &self.begun[..self.count]
    }

    /// Takes one character from the front of the bytes; none when all of it was taken and more is
    /// needed. What is no character becomes a replacement.
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> Option<char> {
        if self.count == 0 {
            match bytes.first() {
                Some(byte) if byte.is_ascii() => {
                    *bytes = &bytes[1..];
                    return Some(char::from(*byte));
                }
                Some(lead) => {
                    let whole = bytes.get(..length(*lead)).map(std::str::from_utf8);
                    if let Some(Ok(text)) = whole {
                        *bytes = &bytes[text.len()..];
                        return text.chars().next();
                    }
                }
                None => return None,
            }
        }
        while let Some((byte, rest)) = bytes.split_first() {
            self.begun[self.count] = *byte;
            match std::str::from_utf8(&self.begun[..=self.count]) {
                Ok(text) => {
                    let character = text.chars().next();
                    (self.count, *bytes) = (0, rest);
                    return character;
                }
                Err(error) if error.error_len().is_none() => {
                    self.count += 1;
                    *bytes = rest;
                }
                Err(_) => {
                    // The byte that does not fit begins anew, unless it is the first.
                    if self.count == 0 {
                        *bytes = rest;
                    }
                    self.count = 0;
                    return Some(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        None
    }
}

fn length(lead: u8) -> usize {
    match lead {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    }
}
