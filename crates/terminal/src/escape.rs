//! Control characters, short sequences and strings.

use crate::cells::Cell;
use crate::charset::Charset;
use crate::state::State;

impl State {
    /// C0 and C1 controls that begin no sequence.
    pub(crate) fn control(&mut self, control: char) {
        self.printed = false;
        match control {
            '\u{8}' => {
                self.settle();
                self.x = self.x.saturating_sub(1);
            }
            '\t' if self.x < self.cols => self.x = self.screen().tabs.next(self.x, self.cols),
            '\n' | '\u{b}' | '\u{c}' => {
                self.line_feed();
                if self.modes.newline {
                    self.x = 0;
                }
            }
            '\r' => self.x = 0,
            '\u{e}' => self.charsets.used = 1,
            '\u{f}' => self.charsets.used = 0,
            '\u{84}' => self.line_feed(),
            '\u{85}' => {
                self.x = 0;
                self.line_feed();
            }
            '\u{88}' => self.set_tab(),
            '\u{8d}' => self.reverse_line_feed(),
            _ => {}
        }
    }

    fn set_tab(&mut self) {
        let (x, cols) = (self.x, self.cols);
        if x < cols {
            self.screen_mut().tabs.set(x, true);
        }
    }

    /// What follows an ESC: intermediates and a final byte.
    pub(crate) fn escape(&mut self, sequence: &[u8]) {
        self.printed = false;
        match sequence {
            b"7" => self.save_cursor(),
            b"8" => self.restore_cursor(),
            b"D" => self.line_feed(),
            b"E" => {
                self.x = 0;
                self.line_feed();
            }
            b"H" => self.set_tab(),
            b"M" => self.reverse_line_feed(),
            b"c" => self.reset(),
            b"=" => self.modes.application_keypad = true,
            b">" => self.modes.application_keypad = false,
            b"n" => self.charsets.used = 2,
            b"o" => self.charsets.used = 3,
            b"#8" => {
                let pattern = Cell::new('E', 1, self.style);
                self.screen_mut().rows.iter_mut().for_each(|row| row.clear(pattern));
                (self.x, self.y) = (0, 0);
                self.go_to(0, 0);
            }
            [set @ (b'(' | b')' | b'*' | b'+'), by] => {
                self.charsets.sets[usize::from(set - b'(')] = Charset::designated(*by);
            }
            _ => {}
        }
    }

    /// An operating system command.
    pub(crate) fn command(&mut self, text: &[u8]) {
        if let Some(title) = text.strip_prefix(b"0;").or_else(|| text.strip_prefix(b"2;")) {
            self.title = String::from_utf8_lossy(title).into_owned();
        }
    }
}
