//! Everything a terminal remembers but for the sequence it is reading, and how the cursor moves.

use crate::cells::Cell;
use crate::charset::Charsets;
use crate::limits::{MAX_REPEATS_SAVED, MAX_TITLES, REPEATS_PER_BYTE};
use crate::marks::Marks;
use crate::modes::Modes;
use crate::screen::{Saved, Screen};
use crate::style::Style;

pub(crate) struct State {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) primary: Screen,
    /// While it is shown.
    pub(crate) alternate: Option<Screen>,
    /// `cols` behind the last place of a line: the next character wraps.
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) style: Style,
    pub(crate) charsets: Charsets,
    pub(crate) modes: Modes,
    /// As in DECSCUSR.
    pub(crate) cursor_style: u8,
    pub(crate) marks: Marks,
    /// Bytes that may still be spent before marks may be searched for.
    search_in: usize,
    /// Cells that repetitions may still cost.
    pub(crate) repeats: usize,
    pub(crate) title: String,
    pub(crate) titles: Vec<String>,
    /// The character before the cursor was the last thing written, so it can be repeated.
    pub(crate) printed: bool,
}

impl State {
    pub(crate) fn new(rows: usize, cols: usize) -> Self {
        Self {
            rows,
            cols,
            primary: Screen::new(rows, Cell::default()),
            alternate: None,
            x: 0,
            y: 0,
            style: Style::default(),
            charsets: Charsets::default(),
            modes: Modes::default(),
            cursor_style: 0,
            marks: Marks::default(),
            search_in: 0,
            repeats: MAX_REPEATS_SAVED,
            title: String::new(),
            titles: Vec::new(),
            printed: false,
        }
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.alternate.as_ref().unwrap_or(&self.primary)
    }

    pub(crate) fn screen_mut(&mut self) -> &mut Screen {
        self.alternate.as_mut().unwrap_or(&mut self.primary)
    }

    /// What erasing leaves behind.
    pub(crate) fn blank(&self) -> Cell {
        Cell::blank(self.style.erased())
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.search_in = self.search_in.saturating_sub(bytes);
        self.repeats = self.repeats.min(MAX_REPEATS_SAVED) + REPEATS_PER_BYTE * bytes;
    }

    /// Adds a combining character to a cell's. The search for entries that nobody uses any more
    /// looks at every cell, so it is done once per that many bytes.
    pub(crate) fn add_mark(&mut self, id: u16, mark: char) -> Option<u16> {
        if let Some(id) = self.marks.add(id, mark) {
            return Some(id);
        }
        if self.search_in > 0 {
            return None;
        }
        self.search_in = 2 * self.rows * self.cols;
        let screens = [Some(&self.primary), self.alternate.as_ref()];
        let rows = screens.into_iter().flatten().flat_map(|screen| &screen.rows);
        self.marks.keep(rows.flat_map(|row| row.stored()).map(|cell| cell.marks));
        self.marks.add(id, mark)
    }

    pub(crate) fn resize(&mut self, rows: usize, cols: usize) {
        let (old, y) = (self.cols, self.y);
        (self.rows, self.cols) = (rows, cols);
        self.y = self.screen_mut().resize(rows, cols, old, y);
        if self.alternate.is_some() {
            let saved = self.primary.saved.y;
            self.primary.resize(rows, cols, old, saved);
        }
        self.x = self.x.min(cols);
        self.printed = false;
    }

    /// The cursor is within the line: nothing wraps.
    pub(crate) fn settle(&mut self) {
        self.x = self.x.min(self.cols - 1);
    }

    /// To a place as programs name it, from 0.
    pub(crate) fn go_to(&mut self, x: usize, y: usize) {
        self.x = x.min(self.cols - 1);
        self.y = match self.modes.origin {
            true => (self.screen().top + y).min(self.screen().bottom),
            false => y.min(self.rows - 1),
        };
    }

    pub(crate) fn up(&mut self, count: usize) {
        self.settle();
        let top = self.screen().top;
        self.y = if self.y >= top {
            self.y.saturating_sub(count).max(top)
        } else {
            self.y.saturating_sub(count)
        };
    }

    pub(crate) fn down(&mut self, count: usize) {
        self.settle();
        let bottom = self.screen().bottom;
        let limit = if self.y <= bottom { bottom } else { self.rows - 1 };
        self.y = (self.y + count).min(limit);
    }

    /// One row down, where the margin's rows scroll.
    pub(crate) fn line_feed(&mut self) {
        let (y, last, blank) = (self.y, self.rows - 1, self.blank());
        let screen = self.screen_mut();
        if y == screen.bottom {
            let top = screen.top;
            screen.scroll_up(top, 1, blank);
        } else {
            self.y = (y + 1).min(last);
        }
        self.settle();
    }

    pub(crate) fn reverse_line_feed(&mut self) {
        self.settle();
        let (y, blank) = (self.y, self.blank());
        let screen = self.screen_mut();
        if y == screen.top {
            screen.scroll_down(y, 1, blank);
        } else {
            self.y = y.saturating_sub(1);
        }
    }

    pub(crate) fn save_cursor(&mut self) {
        let x = self.x.min(self.cols - 1);
        let saved = Saved { x, y: self.y, style: self.style, charsets: self.charsets };
        self.screen_mut().saved = saved;
    }

    pub(crate) fn restore_cursor(&mut self) {
        let screen = self.screen();
        let (saved, top, bottom) = (screen.saved, screen.top, screen.bottom);
        (self.x, self.style, self.charsets) = (saved.x, saved.style, saved.charsets);
        self.y = if self.modes.origin { saved.y.clamp(top, bottom) } else { saved.y };
    }

    pub(crate) fn show_alternate(&mut self, on: bool) {
        if !on {
            self.alternate = None;
        } else if self.alternate.is_none() {
            self.alternate = Some(Screen::new(self.rows, self.blank()));
        }
        if self.modes.origin {
            let (top, bottom) = (self.screen().top, self.screen().bottom);
            self.y = self.y.clamp(top, bottom);
        }
    }

    pub(crate) fn set_margins(&mut self, top: usize, bottom: usize) {
        let last = self.rows - 1;
        let bottom = bottom.min(last);
        if top >= bottom {
            return;
        }
        let screen = self.screen_mut();
        (screen.top, screen.bottom) = (top, bottom);
        self.go_to(0, 0);
    }

    pub(crate) fn push_title(&mut self) {
        if self.titles.len() == MAX_TITLES {
            self.titles.remove(0);
        }
        self.titles.push(self.title.clone());
    }

    pub(crate) fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.title = title;
        }
    }

    pub(crate) fn soft_reset(&mut self) {
        self.modes.soft_reset();
        (self.style, self.charsets) = (Style::default(), Charsets::default());
        let last = self.rows - 1;
        let screen = self.screen_mut();
        (screen.top, screen.bottom, screen.saved) = (0, last, Saved::default());
    }

    /// Everything but the size and the titles.
    pub(crate) fn reset(&mut self) {
        let titles = (std::mem::take(&mut self.title), std::mem::take(&mut self.titles));
        let spent = (self.search_in, self.repeats);
        *self = Self::new(self.rows, self.cols);
        (self.title, self.titles) = titles;
        (self.search_in, self.repeats) = spent;
    }
}
