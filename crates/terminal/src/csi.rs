//! Control sequences with parameters.

use crate::limits::MAX_PARAMETERS;
use crate::sgr;
use crate::state::State;

/// Numbers of a sequence; a missing one is 0.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    values: [u16; MAX_PARAMETERS],
    count: usize,
    /// Bit n: parameter n follows a colon and belongs to the one before it.
    subs: u32,
}

impl Parameters {
    fn read(text: &[u8]) -> Self {
        let mut read = Self { count: 1, ..Self::default() };
        for byte in text {
            match byte {
                b'0'..=b'9' => {
                    let value = &mut read.values[read.count - 1];
                    *value = value.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                }
                _ if read.count == MAX_PARAMETERS => break,
                separator => {
                    read.subs |= u32::from(*separator == b':') << read.count;
                    read.count += 1;
                }
            }
        }
        read
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, at: usize) -> u16 {
        self.values[..self.count].get(at).copied().unwrap_or(0)
    }

    /// Where 0 and nothing mean 1.
    fn count(&self) -> usize {
        usize::from(self.get(0)).max(1)
    }

    /// The same less one, for places.
    fn place(&self, at: usize) -> usize {
        usize::from(self.get(at)).saturating_sub(1)
    }

    pub(crate) fn from(&self, at: usize) -> &[u16] {
        &self.values[at.min(self.count)..self.count]
    }

    /// A parameter and those that belong to it.
    pub(crate) fn with_subs(&self, at: usize) -> (u16, &[u16]) {
        let end = (at + 1..self.count).find(|next| self.subs >> next & 1 == 0);
        (self.get(at), &self.values[at + 1..end.unwrap_or(self.count)])
    }
}

impl State {
    /// Everything behind the introducer.
    pub(crate) fn sequence(&mut self, sequence: &[u8]) {
        let (prefix, rest) = match sequence {
            [prefix @ 0x3c..=0x3f, rest @ ..] => (Some(*prefix), rest),
            rest => (None, rest),
        };
        let numbers = rest.iter().take_while(|byte| matches!(byte, 0x30..=0x3b)).count();
        let (numbers, ending) = rest.split_at(numbers);
        let parameters = Parameters::read(numbers);
        if (prefix, ending) == (None, b"b") {
            return self.repeat(parameters.count());
        }
        self.printed = false;
        match (prefix, ending) {
            (None, [last]) => self.plain(*last, &parameters),
            (None, b"!p") => self.soft_reset(),
            (None, b" q") => self.cursor_style = parameters.get(0).min(6) as u8,
            (Some(b'?'), b"h") => {
                parameters.from(0).iter().for_each(|mode| self.private(*mode, true))
            }
            (Some(b'?'), b"l") => {
                parameters.from(0).iter().for_each(|mode| self.private(*mode, false))
            }
            (Some(b'?'), b"J") => self.erase_display(parameters.get(0)),
            (Some(b'?'), b"K") => self.erase_line(parameters.get(0)),
            _ => {}
        }
    }

    fn plain(&mut self, last: u8, parameters: &Parameters) {
        let count = parameters.count();
        let (cols, blank) = (self.cols, self.blank());
        match last {
            b'A' => self.up(count),
            b'B' | b'e' => self.down(count),
            b'C' | b'a' => {
                self.settle();
                self.x = (self.x + count).min(cols - 1);
            }
            b'D' => {
                self.settle();
                self.x = self.x.saturating_sub(count);
            }
            b'E' => {
                self.down(count);
                self.x = 0;
            }
            b'F' => {
                self.up(count);
                self.x = 0;
            }
            b'G' | b'`' => self.x = parameters.place(0).min(cols - 1),
            b'H' | b'f' => self.go_to(parameters.place(1), parameters.place(0)),
            b'd' => self.go_to(self.x, parameters.place(0)),
            b'I' if self.x < cols => {
                for _ in 0..count.min(cols) {
                    self.x = self.screen().tabs.next(self.x, cols);
                }
            }
            b'Z' if self.x < cols => {
                for _ in 0..count.min(cols) {
                    self.x = self.screen().tabs.previous(self.x);
                }
            }
            b'J' => self.erase_display(parameters.get(0)),
            b'K' => self.erase_line(parameters.get(0)),
            b'@' | b'P' | b'X' => {
                self.settle();
                let (x, y) = (self.x, self.y);
                let row = &mut self.screen_mut().rows[y];
                match last {
                    b'@' => row.insert(x, count, blank, cols),
                    b'P' => row.delete(x, count, blank, cols),
                    _ => row.erase(x, (x + count).min(cols), blank, cols),
                }
            }
            b'L' | b'M' => {
                let y = self.y;
                let screen = self.screen_mut();
                if y < screen.top || y > screen.bottom {
                    return self.settle();
                }
                match last {
                    b'L' => screen.scroll_down(y, count, blank),
                    _ => screen.scroll_up(y, count, blank),
                }
                self.x = 0;
            }
            b'S' | b'T' => {
                let screen = self.screen_mut();
                let top = screen.top;
                match last {
                    b'S' => screen.scroll_up(top, count, blank),
                    // With more parameters it is about the mouse.
                    _ if parameters.len() <= 1 => screen.scroll_down(top, count, blank),
                    _ => {}
                }
            }
            b'g' => {
                let x = self.x;
                let tabs = &mut self.screen_mut().tabs;
                match parameters.get(0) {
                    0 if x < cols => tabs.set(x, false),
                    3 => tabs.clear(cols),
                    _ => {}
                }
            }
            b'h' | b'l' => {
                for mode in parameters.from(0) {
                    match mode {
                        4 => self.modes.insert = last == b'h',
                        20 => self.modes.newline = last == b'h',
                        _ => {}
                    }
                }
            }
            b'm' => sgr::apply(&mut self.style, parameters),
            b'r' => {
                let bottom = match parameters.get(1) {
                    0 => self.rows,
                    bottom => usize::from(bottom),
                };
                self.set_margins(parameters.place(0), bottom - 1);
            }
            b's' => self.save_cursor(),
            b'u' => self.restore_cursor(),
            b't' => match (parameters.get(0), parameters.get(1)) {
                (22, 0 | 2) => self.push_title(),
                (23, 0 | 2) => self.pop_title(),
                _ => {}
            },
            _ => {}
        }
    }

    fn private(&mut self, mode: u16, on: bool) {
        match mode {
            6 => {
                self.modes.origin = on;
                self.go_to(0, 0);
            }
            47 | 1047 => self.show_alternate(on),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 if on => {
                self.save_cursor();
                self.show_alternate(true);
            }
            1049 => {
                self.show_alternate(false);
                self.restore_cursor();
            }
            _ => self.modes.switch(mode, on),
        }
    }

    fn erase_line(&mut self, what: u16) {
        let (x, y, cols, blank) = (self.x, self.y, self.cols, self.blank());
        let row = &mut self.screen_mut().rows[y];
        match what {
            0 => row.erase(x, cols, blank, cols),
            1 => row.erase(0, (x + 1).min(cols), blank, cols),
            2 => row.clear(blank),
            _ => {}
        }
        if what == 0 && x == 0 {
            row.wrapped = false;
        }
    }

    fn erase_display(&mut self, what: u16) {
        let (y, blank) = (self.y, self.blank());
        if what < 2 {
            self.erase_line(what);
        }
        let rows = &mut self.screen_mut().rows;
        let others = match what {
            0 => &mut rows[y + 1..],
            1 => &mut rows[..y],
            2 => &mut rows[..],
            _ => return,
        };
        others.iter_mut().for_each(|row| row.clear(blank));
    }
}
