//! Bytes of the link, without any IO: where payload, opens and damage are in them.

use memchr::memchr;

/// Begins everything that is not payload, and is in no UTF-8 text, so that text is sent as it is.
pub const ESC: u8 = 0xC1;

/// After [`ESC`]: it is payload.
const LITERAL: u8 = 0x00;

/// After [`ESC`]: a nonce follows.
const OPEN: u8 = 0x01;

const DIGITS: usize = 32;

/// Length of an open on the wire.
pub const OPEN_BYTES: usize = 2 + DIGITS;

/// What one opening of the link is known by: 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; DIGITS]);

impl Nonce {
    pub fn new(random: [u8; DIGITS / 2]) -> Self {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(random) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        Self(digits)
    }

    /// The open that says it.
    pub fn open(&self) -> [u8; OPEN_BYTES] {
        let mut wire = [0; OPEN_BYTES];
        wire[..2].copy_from_slice(&[ESC, OPEN]);
        wire[2..].copy_from_slice(&self.0);
        wire
    }
}

impl std::fmt::Debug for Nonce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Appends payload to `wire`, which grows by at most `room`. Returns how much of it was taken.
pub fn stuff(payload: &[u8], wire: &mut Vec<u8>, room: usize) -> usize {
    let end = wire.len() + room;
    let mut taken = 0;
    while taken < payload.len() && wire.len() < end {
        let rest = &payload[taken..payload.len().min(taken + end - wire.len())];
        let run = memchr(ESC, rest).unwrap_or(rest.len());
        wire.extend_from_slice(&rest[..run]);
        taken += run;
        // Those that come one after the other are not searched for.
        while payload.get(taken) == Some(&ESC) {
            if end - wire.len() < 2 {
                return taken;
            }
            wire.extend_from_slice(&[ESC, LITERAL]);
            taken += 1;
        }
    }
    taken
}

/// What is in the stream beside payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// What follows is payload of a new stream.
    Open(Nonce),
    /// The stream is damaged: nothing is payload before the next open.
    Lost,
}

/// What was found in a piece of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// So many bytes of payload are now at the front of the piece.
    pub payload: usize,
    /// So many bytes of the piece were looked at: all of them, or those up to the mark.
    pub taken: usize,
    /// Found behind the payload.
    pub mark: Option<Mark>,
}

/// Finds payload and marks, however the wire is cut into pieces.
#[derive(Debug, Clone)]
pub struct Decoder {
    state: State,
    /// Whether bytes are payload, or dropped until there is an open.
    synced: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Plain,
    Escaped,
    Opening { digits: [u8; DIGITS], known: usize },
}

impl Default for Decoder {
    /// Before the first open.
    fn default() -> Self {
        Self { state: State::Plain, synced: false }
    }
}

impl Decoder {
    /// Takes the piece up to the first mark and moves its payload together at the front.
    pub fn decode(&mut self, piece: &mut [u8]) -> Step {
        let (mut payload, mut at) = (0, 0);
        while at < piece.len() {
            if matches!(self.state, State::Plain) {
                // Those that come one after the other are not searched for.
                while self.synced && piece[at..].starts_with(&[ESC, LITERAL]) {
                    piece[payload] = ESC;
                    (payload, at) = (payload + 1, at + 2);
                }
                let rest = &piece[at..];
                let run = memchr(ESC, rest).unwrap_or(rest.len());
                if self.synced {
                    if payload != at {
                        piece.copy_within(at..at + run, payload);
                    }
                    payload += run;
                }
                at += run;
                if at < piece.len() {
                    self.state = State::Escaped;
                    at += 1;
                }
                continue;
            }
            let byte = piece[at];
            at += 1;
            let mark = match self.special(byte) {
                Special::Nothing => continue,
                Special::Literal => {
                    piece[payload] = ESC;
                    payload += 1;
                    continue;
                }
                Special::Open(nonce) => Mark::Open(nonce),
                Special::Damage if std::mem::take(&mut self.synced) => Mark::Lost,
                Special::Damage => continue,
            };
            return Step { payload, taken: at, mark: Some(mark) };
        }
        Step { payload, taken: at, mark: None }
    }

    /// One byte behind an [`ESC`].
    fn special(&mut self, byte: u8) -> Special {
        match (&mut self.state, byte) {
            // What came before was cut off, and this begins something new.
            (state, ESC) => {
                *state = State::Escaped;
                Special::Damage
            }
            (state @ State::Escaped, OPEN) => {
                *state = State::Opening { digits: [0; DIGITS], known: 0 };
                Special::Nothing
            }
            (state @ State::Escaped, LITERAL) if self.synced => {
                *state = State::Plain;
                Special::Literal
            }
            (State::Opening { digits, known }, b'0'..=b'9' | b'a'..=b'f') => {
                digits[*known] = byte;
                *known += 1;
                if *known < DIGITS {
                    return Special::Nothing;
                }
                let nonce = Nonce(*digits);
                *self = Self { state: State::Plain, synced: true };
                Special::Open(nonce)
            }
            (state, _) => {
                *state = State::Plain;
                Special::Damage
            }
        }
    }
}

enum Special {
    Nothing,
    Literal,
    Open(Nonce),
    Damage,
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
