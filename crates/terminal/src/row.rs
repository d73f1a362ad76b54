//! One line of the screen.
//!
//! What lies behind the last written place is not stored, so that erasing costs nothing.

use crate::cells::Cell;

#[cfg(test)]
thread_local! {
    /// Places that were written or moved.
    pub(crate) static TOUCHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counted by tests alone.
#[inline]
fn touch(_places: usize) {
    #[cfg(test)]
    TOUCHED.with(|touched| touched.set(touched.get() + _places as u64));
}

pub(crate) struct Row {
    cells: Vec<Cell>,
    /// What every place behind `cells` holds.
    fill: Cell,
    /// It goes on with the line above it.
    pub(crate) wrapped: bool,
    /// Since it was cleared there was a wide character.
    wide: bool,
}

impl Row {
    pub(crate) fn new(fill: Cell) -> Self {
        Self { cells: Vec::new(), fill, wrapped: false, wide: false }
    }

    pub(crate) fn get(&self, x: usize) -> Cell {
        self.cells.get(x).copied().unwrap_or(self.fill)
    }

    /// The stored places; those behind them are all alike.
    pub(crate) fn stored(&self) -> &[Cell] {
        &self.cells
    }

    pub(crate) fn fill(&self) -> Cell {
        self.fill
    }

    /// Stores `count` places of a line with `cols` of them.
    fn store(&mut self, count: usize, cols: usize) {
        if count > self.cells.len() {
            touch(count - self.cells.len());
            self.reserve(count, cols);
            self.cells.resize(count, self.fill);
        }
    }

    /// Never for more than the line has.
    fn reserve(&mut self, count: usize, cols: usize) {
        let capacity = self.cells.capacity();
        if count > capacity {
            let room = count.max(2 * capacity).max(16).min(cols.max(count));
            self.cells.reserve_exact(room - self.cells.len());
        }
    }

    pub(crate) fn set(&mut self, x: usize, cell: Cell, cols: usize) {
        touch(1);
        self.store(x + 1, cols);
        self.wide |= cell.width == 2;
        self.cells[x] = cell;
    }

    /// Plain text of one style; the caller has made sure that it fits.
    pub(crate) fn write(&mut self, x: usize, text: &[u8], model: Cell, cols: usize) {
        touch(text.len());
        self.store(x, cols);
        let over = (self.cells.len() - x).min(text.len());
        let (within, beyond) = text.split_at(over);
        for (cell, byte) in self.cells[x..].iter_mut().zip(within) {
            *cell = Cell { text: char::from(*byte), ..model };
        }
        if !beyond.is_empty() {
            self.reserve(self.cells.len() + beyond.len(), cols);
            self.cells.extend(beyond.iter().map(|byte| Cell { text: char::from(*byte), ..model }));
        }
    }

    pub(crate) fn clear(&mut self, fill: Cell) {
        self.cells.clear();
        self.fill = fill;
        (self.wrapped, self.wide) = (false, false);
    }

    pub(crate) fn erase(&mut self, from: usize, to: usize, blank: Cell, cols: usize) {
        if from >= to {
            return;
        }
        if to >= cols {
            if from > self.cells.len() {
                self.store(from, cols);
            }
            self.cells.truncate(from);
            self.fill = blank;
        } else {
            touch(to - from);
            self.store(to, cols);
            self.cells[from..to].fill(blank);
        }
        self.heal(cols);
    }

    /// Moves what is at `x` and behind it to the right.
    pub(crate) fn insert(&mut self, x: usize, count: usize, blank: Cell, cols: usize) {
        let count = count.min(cols - x);
        self.store(x, cols);
        let end = (self.cells.len() + count).min(cols);
        if self.cells.len() > x {
            touch(end - x);
            self.store(end, cols);
            self.cells[x..end].rotate_right(count.min(end - x));
        } else {
            self.store(x + count, cols);
        }
        self.cells[x..x + count].fill(blank);
        self.heal(cols);
    }

    /// Moves what is behind the deleted places to the left.
    pub(crate) fn delete(&mut self, x: usize, count: usize, blank: Cell, cols: usize) {
        let count = count.min(cols - x);
        let (stored, fill) = (self.cells.len(), self.fill);
        if x < stored {
            touch(stored - x);
            self.cells.drain(x..(x + count).min(stored));
        }
        if fill != blank {
            self.store(cols - count, cols);
            self.fill = blank;
        }
        self.heal(cols);
    }

    pub(crate) fn resize(&mut self, cols: usize) {
        self.cells.truncate(cols);
        self.cells.shrink_to(cols);
        self.heal(cols);
    }

    /// Halves of wide characters that lost the other half become blank.
    fn heal(&mut self, cols: usize) {
        if !self.wide {
            return;
        }
        touch(self.cells.len());
        let mut x = 0;
        while x < self.cells.len() {
            let cell = self.cells[x];
            if cell.width == 2 && x + 1 < cols && self.get(x + 1).width == 0 {
                x += 2;
                continue;
            }
            if cell.width != 1 {
                self.cells[x] = Cell::blank(cell.style);
            }
            x += 1;
        }
    }
}
