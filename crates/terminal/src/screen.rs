//! The lines of a screen with what belongs to it: margins, tab stops, the saved cursor.

use crate::cells::Cell;
use crate::charset::Charsets;
use crate::row::Row;
use crate::style::Style;
use crate::tabs::Tabs;

pub(crate) struct Screen {
    pub(crate) rows: Vec<Row>,
    /// First and last row that scroll.
    pub(crate) top: usize,
    pub(crate) bottom: usize,
    pub(crate) tabs: Tabs,
    pub(crate) saved: Saved,
}

/// What saving the cursor saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Saved {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) style: Style,
    pub(crate) charsets: Charsets,
}

impl Screen {
    pub(crate) fn new(rows: usize, fill: Cell) -> Self {
        Self {
            rows: (0..rows).map(|_| Row::new(fill)).collect(),
            top: 0,
            bottom: rows - 1,
            tabs: Tabs::default(),
            saved: Saved::default(),
        }
    }

    /// Rows from `from` to the lower margin move up; empty ones follow.
    pub(crate) fn scroll_up(&mut self, from: usize, count: usize, fill: Cell) {
        let part = &mut self.rows[from..=self.bottom];
        let count = count.min(part.len());
        part.rotate_left(count);
        let kept = part.len() - count;
        part[kept..].iter_mut().for_each(|row| row.clear(fill));
    }

    /// Rows from `from` to the lower margin move down.
    pub(crate) fn scroll_down(&mut self, from: usize, count: usize, fill: Cell) {
        let part = &mut self.rows[from..=self.bottom];
        let count = count.min(part.len());
        part.rotate_right(count);
        part[..count].iter_mut().for_each(|row| row.clear(fill));
    }

    /// The cursor's row stays on the screen: rows above it go first when those below it do not do.
    pub(crate) fn resize(&mut self, rows: usize, cols: usize, old_cols: usize, y: usize) -> usize {
        let above = (y + 1).saturating_sub(rows);
        self.rows.drain(..above);
        self.rows.truncate(rows);
        self.rows.shrink_to(rows);
        self.rows.iter_mut().for_each(|row| row.resize(cols));
        self.rows.resize_with(rows, || Row::new(Cell::default()));
        (self.top, self.bottom) = (0, rows - 1);
        self.tabs.resize(old_cols, cols);
        self.saved.y = self.saved.y.saturating_sub(above).min(rows - 1);
        self.saved.x = self.saved.x.min(cols - 1);
        y - above
    }
}
