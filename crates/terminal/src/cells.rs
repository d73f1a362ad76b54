//! One place of the screen.

use crate::style::Style;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: char,
    /// Its combining characters in [`crate::marks::Marks`]; 0 is none.
    pub(crate) marks: u16,
    /// 2 of a wide character, 0 of the place behind it.
    pub(crate) width: u8,
    pub(crate) style: Style,
}

impl Cell {
    pub(crate) fn new(text: char, width: u8, style: Style) -> Self {
        Self { text, marks: 0, width, style }
    }

    pub(crate) fn blank(style: Style) -> Self {
        Self::new(' ', 1, style)
    }

    /// The second half of a wide character.
    pub(crate) fn behind(style: Style) -> Self {
        Self::new(' ', 0, style)
    }

    /// Nothing that a fresh terminal does not show.
    pub(crate) fn is_fresh(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::blank(Style::default())
    }
}
