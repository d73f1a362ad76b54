//! Characters onto the screen.

use unicode_width::UnicodeWidthChar;

use crate::cells::Cell;
use crate::charset::Charset;
use crate::state::State;

impl State {
    /// A run of printable ASCII.
    pub(crate) fn print_ascii(&mut self, mut text: &[u8]) {
        if self.modes.insert || self.charsets.current() != Charset::Ascii {
            return text.iter().for_each(|byte| self.print(char::from(*byte)));
        }
        while let Some(first) = text.first() {
            if self.x >= self.cols {
                self.print(char::from(*first));
                text = &text[1..];
                continue;
            }
            let (now, rest) = text.split_at(text.len().min(self.cols - self.x));
            self.write(now);
            text = rest;
        }
        self.printed = true;
    }

    fn write(&mut self, text: &[u8]) {
        let (x, y, cols) = (self.x, self.y, self.cols);
        let model = Cell::blank(self.style);
        let row = &mut self.screen_mut().rows[y];
        if x > 0 && row.get(x).width == 0 {
            row.set(x - 1, model, cols);
        }
        let end = x + text.len();
        if end < cols && row.get(end).width == 0 {
            row.set(end, model, cols);
        }
        row.write(x, text, model, cols);
        self.x = end;
    }

    pub(crate) fn print(&mut self, text: char) {
        let text = self.charsets.current().translate(text);
        match text.width().unwrap_or(0) {
            0 => self.combine(text),
            width => self.put(text, width.min(2)),
        }
    }

    fn put(&mut self, text: char, width: usize) {
        let cols = self.cols;
        if width > cols {
            return;
        }
        if self.x + width > cols {
            if self.modes.autowrap {
                self.wrap();
            } else if width == 2 {
                return;
            } else {
                self.x = cols - 1;
            }
        }
        let (x, y, style, blank) = (self.x, self.y, self.style, Cell::blank(self.style));
        let insert = self.modes.insert;
        let row = &mut self.screen_mut().rows[y];
        if insert {
            row.insert(x, width, blank, cols);
        }
        if x > 0 && row.get(x).width == 0 {
            row.set(x - 1, blank, cols);
        }
        let end = x + width;
        if end < cols && row.get(end).width == 0 {
            row.set(end, blank, cols);
        }
        row.set(x, Cell::new(text, width as u8, style), cols);
        if width == 2 {
            row.set(x + 1, Cell::behind(style), cols);
        }
        self.x = end;
        self.printed = true;
    }

    /// To the beginning of the next line, which then goes on with this one.
    fn wrap(&mut self) {
        let (x, y, cols, style) = (self.x, self.y, self.cols, self.style);
        if x < cols {
            // A wide character does not fit; whatever is left here is passed over.
            self.screen_mut().rows[y].erase(x, cols, Cell::blank(style), cols);
        }
        self.x = 0;
        let at_margin = y == self.screen().bottom;
        self.line_feed();
        if at_margin || self.y != y {
            let y = self.y;
            self.screen_mut().rows[y].wrapped = true;
        }
    }

    /// Onto the character before the cursor.
    fn combine(&mut self, mark: char) {
        let Some(before) = self.x.checked_sub(1) else { return };
        let (y, cols) = (self.y, self.cols);
        let row = &self.screen().rows[y];
        let x = if row.get(before).width == 0 { before.saturating_sub(1) } else { before };
        let cell = row.get(x);
        if let Some(marks) = self.add_mark(cell.marks, mark) {
            self.screen_mut().rows[y].set(x, Cell { marks, ..cell }, cols);
        }
    }

    /// The character before the cursor again; at most a line of it, which is what it is for, and no
    /// more than the bytes that were spent are worth: see [`crate::limits`].
    pub(crate) fn repeat(&mut self, count: usize) {
        let Some(before) = self.x.checked_sub(1).filter(|_| self.printed) else { return };
        let row = &self.screen().rows[self.y];
        let wide = row.get(before).width == 0 && before > 0;
        let cell = row.get(before - usize::from(wide));
        let marks = self.marks.of(cell.marks).to_vec();
        // Inserting moves what is behind it.
        let inserting = if self.modes.insert { self.cols / 8 } else { 0 };
        let width = usize::from(cell.width).max(1);
        let cost = width + marks.len() + inserting;
        let count = count.min(self.cols).min(self.repeats / cost);
        self.repeats -= count * cost;
        for _ in 0..count {
            self.put(cell.text, width);
            marks.iter().for_each(|mark| self.combine(*mark));
        }
        self.printed = false;
    }
}
