//! What a terminal shows: a model of its screen, and the bytes that paint it again.
//!
//! [`Terminal`] is fed every byte a program writes. [`Terminal::repaint`] gives bytes which, written
//! to a fresh terminal of the same size, show what is shown now and leave that terminal as the
//! program believes it to be: modes, margins, tab stops, saved cursors, and a sequence that was cut
//! in the middle. Whatever follows means the same to both.
//!
//! It behaves as xterm.js does, which is what shows it. What is not modelled has no effect on the
//! screen: answers to questions, sounds, colour palettes, hyperlinks, pictures, and what scrolled
//! away. Output is hostile: memory is bounded by the size of the screen, and work by the bytes.

mod cells;
mod charset;
mod csi;
mod escape;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod marks;
mod modes;
mod paint;
mod parser;
mod print;
mod repaint;
mod row;
mod screen;
mod sgr;
mod state;
mod style;
mod tabs;
mod utf8;

#[cfg(test)]
mod tests;

use parser::Parser;
use state::State;

pub use limits::{MAX_COLS, MAX_ROWS};

/// The model of one terminal.
pub struct Terminal {
    parser: Parser,
    state: State,
}

/// Where the cursor stands, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
}

impl Terminal {
    /// Of that size, within 1 and [`MAX_ROWS`] or [`MAX_COLS`].
    pub fn new(rows: u16, cols: u16) -> Self {
        let (rows, cols) = within_bounds(rows, cols);
        Self { parser: Parser::default(), state: State::new(rows, cols) }
    }

    /// What the program wrote.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.state.spend(bytes.len());
        self.parser.feed(bytes, &mut self.state);
    }

    /// As `new`; text that no longer fits is cut, as nobody knows how the viewer folds it.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        let (rows, cols) = within_bounds(rows, cols);
        self.state.resize(rows, cols);
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        (self.state.rows as u16, self.state.cols as u16)
    }

    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Whether the screen of full-screen programs is shown, which has no past.
    pub fn alternate(&self) -> bool {
        self.state.alternate.is_some()
    }

    pub fn cursor(&self) -> Cursor {
        let col = self.state.x.min(self.state.cols - 1);
        Cursor { row: self.state.y as u16, col: col as u16, visible: self.state.modes.visible }
    }

    /// Bytes that make a terminal of the same size show this; see the crate's description.
    ///
    /// Above [`limits::MAX_REPAINT_BYTES`] it is the text alone, without colours and attributes.
    pub fn repaint(&self) -> Vec<u8> {
        repaint::repaint(&self.state, self.parser.pending())
    }
}

fn within_bounds(rows: u16, cols: u16) -> (usize, usize) {
    (usize::from(rows.clamp(1, MAX_ROWS)), usize::from(cols.clamp(1, MAX_COLS)))
}
