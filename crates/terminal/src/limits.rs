//! Every bound of the model, and what happens when it is reached.

/// Larger sizes are taken for these.
pub const MAX_ROWS: u16 = 500;
pub const MAX_COLS: u16 = 500;

/// Of a sequence that has not ended; a longer one is ignored to its end.
pub(crate) const MAX_SEQUENCE_BYTES: usize = 4_096;

/// Parameters of a sequence; further ones are ignored.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// Cells with combining characters on both screens; further ones show their base alone.
pub(crate) const MAX_MARKED_CELLS: usize = 16_384;

/// Combining characters of a cell; further ones are not shown.
pub(crate) const MAX_MARKS: usize = 7;

/// What repeating a character may cost (REP), in cells: so much for each byte of output, and so much
/// that was not used before. A repetition beyond it is cut short, which no program that draws meets.
pub(crate) const REPEATS_PER_BYTE: usize = 16;
pub(crate) const MAX_REPEATS_SAVED: usize = 64 << 10;

/// Titles a program can put aside; above it the oldest is forgotten.
pub(crate) const MAX_TITLES: usize = 10;

/// A repaint beyond it has neither colours nor attributes, which fits at any size.
pub const MAX_REPAINT_BYTES: usize = 8 << 20;
