//! Tab stops, one bit per column.

use crate::limits::MAX_COLS;

const WORDS: usize = 8;
const _: () = assert!(WORDS * 64 >= MAX_COLS as usize);
const EVERY_EIGHT: u64 = 0x0101_0101_0101_0101;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tabs([u64; WORDS]);

impl Default for Tabs {
    fn default() -> Self {
        Self([EVERY_EIGHT; WORDS])
    }
}

impl Tabs {
    pub(crate) fn has(&self, x: usize) -> bool {
        self.0[x / 64] >> (x % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, x: usize, on: bool) {
        let bit = 1 << (x % 64);
        if on { self.0[x / 64] |= bit } else { self.0[x / 64] &= !bit }
    }

    pub(crate) fn clear(&mut self, cols: usize) {
        (0..cols).for_each(|x| self.set(x, false));
    }

    pub(crate) fn next(&self, x: usize, cols: usize) -> usize {
        (x + 1..cols).find(|x| self.has(*x)).unwrap_or(cols - 1)
    }

    pub(crate) fn previous(&self, x: usize) -> usize {
        (0..x).rev().find(|x| self.has(*x)).unwrap_or(0)
    }

    /// Columns that come or go have the stops of a fresh terminal.
    pub(crate) fn resize(&mut self, old: usize, new: usize) {
        for x in old.min(new)..WORDS * 64 {
            self.set(x, x % 8 == 0);
        }
    }
}
