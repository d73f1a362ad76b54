//! Which bytes are text and which belong to a sequence.
//!
//! The bytes of a sequence that has not ended are kept as they came: a terminal that is given them
//! is in the same place.

use crate::limits::MAX_SEQUENCE_BYTES;
use crate::state::State;
use crate::utf8::Utf8;

const ESC: char = '\u{1b}';
const CAN: char = '\u{18}';
const SUB: char = '\u{1a}';

/// Stand for sequences that are too long or make no sense: whatever follows them is ignored until
/// such a sequence ends.
const IGNORED_SEQUENCE: &[u8] = b"\x1b[0<";
const IGNORED_COMMAND: &[u8] = b"\x1b]7777;";
const IGNORED_STRING: &[u8] = b"\x1bX";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Text,
    Escape,
    /// The numbers of a control sequence, and the characters between them and its last.
    Numbers,
    Intermediates,
    IgnoredSequence,
    Command,
    IgnoredCommand,
    /// Ends as a command does, but not with a bell; it has no effect here.
    String,
}

#[derive(Default)]
pub(crate) struct Parser {
    utf8: Utf8,
    place: Place,
    sequence: Vec<u8>,
}

impl Parser {
    /// What has no effect yet.
    pub(crate) fn pending(&self) -> [&[u8]; 2] {
        [&self.sequence, self.utf8.begun()]
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8], state: &mut State) {
        while !bytes.is_empty() {
            if self.place == Place::Text && self.utf8.begun().is_empty() {
                let printable = |byte: &u8| matches!(byte, 0x20..=0x7e);
                let run = bytes.iter().position(|byte| !printable(byte)).unwrap_or(bytes.len());
                if run > 0 {
                    let (text, rest) = bytes.split_at(run);
                    state.print_ascii(text);
                    bytes = rest;
                    continue;
                }
            }
            if let Some(character) = self.utf8.take(&mut bytes) {
                self.step(character, state);
            }
        }
    }

    fn step(&mut self, character: char, state: &mut State) {
        match character {
            CAN | SUB => {
                self.end();
                state.printed = false;
            }
            ESC => {
                self.finish_command(state);
                self.begin(Place::Escape, character);
            }
            '\u{80}'..='\u{9f}' => self.c1(character, state),
            _ => self.within(character, state),
        }
    }

    fn c1(&mut self, character: char, state: &mut State) {
        match character {
            '\u{9c}' => {
                self.finish_command(state);
                self.end();
            }
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => {
                state.printed = false;
                self.begin(Place::String, character);
            }
            '\u{9b}' => self.begin(Place::Numbers, character),
            '\u{9d}' => {
                state.printed = false;
                self.begin(Place::Command, character);
            }
            _ => {
                self.end();
                state.control(character);
            }
        }
    }

    fn within(&mut self, character: char, state: &mut State) {
        match (self.place, character) {
            (Place::Command | Place::IgnoredCommand, '\u{7}') => {
                self.finish_command(state);
                self.end();
            }
            (Place::Command, ' '..) => self.keep(character),
            (Place::Command | Place::IgnoredCommand, _) => {}
            (Place::String, _) => self.keep(character),
            (_, '\0'..' ') => state.control(character),
            (Place::Text, '\u{7f}') => {}
            (Place::Text, _) => state.print(character),
            (_, '\u{7f}') => {}
            (Place::Escape, _) => self.escape(character, state),
            (Place::IgnoredSequence, '@'..='~') => {
                state.printed = false;
                self.end();
            }
            (Place::IgnoredSequence, _) => {}
            (Place::Numbers | Place::Intermediates, _) => self.control_sequence(character, state),
        }
    }

    fn escape(&mut self, character: char, state: &mut State) {
        // The ESC itself, then intermediates.
        let first = self.sequence.len() == 1;
        match character {
            '[' if first => self.turn(Place::Numbers, character),
            ']' if first => {
                state.printed = false;
                self.turn(Place::Command, character);
            }
            'P' | 'X' | '^' | '_' if first => {
                state.printed = false;
                self.turn(Place::String, character);
            }
            ' '..='/' => self.keep(character),
            '0'..='~' => {
                self.sequence.push(character as u8);
                state.escape(&self.sequence[1..]);
                self.end();
            }
            _ => self.end(),
        }
    }

    fn control_sequence(&mut self, character: char, state: &mut State) {
        match character {
            '0'..=';' if self.place == Place::Numbers => self.keep(character),
            // The introducer has two bytes, in either form.
            '<'..='?' if self.place == Place::Numbers && self.sequence.len() == 2 => {
                self.keep(character);
            }
            ' '..='/' => self.turn(Place::Intermediates, character),
            '0'..='?' => self.ignore(),
            '@'..='~' => {
                self.sequence.push(character as u8);
                state.sequence(&self.sequence[2..]);
                self.end();
            }
            _ => self.end(),
        }
    }

    fn begin(&mut self, place: Place, character: char) {
        self.sequence.clear();
        self.turn(place, character);
    }

    fn turn(&mut self, place: Place, character: char) {
        self.place = place;
        self.keep(character);
    }

    fn keep(&mut self, character: char) {
        let bytes = &mut [0; 4];
        let bytes = character.encode_utf8(bytes).as_bytes();
        if self.sequence.len() + bytes.len() <= MAX_SEQUENCE_BYTES {
            self.sequence.extend_from_slice(bytes);
        } else {
            self.ignore();
        }
    }

    /// The rest of it has no effect, wherever it ends.
    fn ignore(&mut self) {
        let (place, stand_in) = match self.place {
            Place::Command | Place::IgnoredCommand => (Place::IgnoredCommand, IGNORED_COMMAND),
            Place::String => (Place::String, IGNORED_STRING),
            _ => (Place::IgnoredSequence, IGNORED_SEQUENCE),
        };
        self.place = place;
        self.sequence.clear();
        self.sequence.extend_from_slice(stand_in);
    }

    fn finish_command(&mut self, state: &mut State) {
        if self.place == Place::Command {
            state.command(&self.sequence[2..]);
        }
    }

    fn end(&mut self) {
        self.place = Place::Text;
        // A terminal that is idle keeps no room for long sequences.
        if self.sequence.capacity() > 256 {
            self.sequence = Vec::new();
        }
        self.sequence.clear();
    }
}
