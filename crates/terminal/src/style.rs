//! How a character looks.

/// 0 is the default; `1 << 24 | n` one of 256; `2 << 24 | rgb` any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Color(u32);

impl Color {
    pub(crate) const DEFAULT: Self = Self(0);

    pub(crate) fn indexed(index: u8) -> Self {
        Self(1 << 24 | u32::from(index))
    }

    pub(crate) fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self(2 << 24 | u32::from_be_bytes([0, red, green, blue]))
    }

    pub(crate) fn kind(self) -> ColorKind {
        let [kind, red, green, blue] = self.0.to_be_bytes();
        match kind {
            0 => ColorKind::Default,
            1 => ColorKind::Indexed(blue),
            _ => ColorKind::Rgb(red, green, blue),
        }
    }
}

pub(crate) enum ColorKind {
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

pub(crate) const BOLD: u16 = 1;
pub(crate) const DIM: u16 = 1 << 1;
pub(crate) const ITALIC: u16 = 1 << 2;
pub(crate) const BLINK: u16 = 1 << 3;
pub(crate) const INVERSE: u16 = 1 << 4;
pub(crate) const INVISIBLE: u16 = 1 << 5;
pub(crate) const STRIKE: u16 = 1 << 6;
pub(crate) const OVERLINE: u16 = 1 << 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    pub(crate) fg: Color,
    pub(crate) bg: Color,
    /// Of the underline.
    pub(crate) line: Color,
    pub(crate) flags: u16,
    /// 0 is none, 1 to 5 are the kinds of SGR 4.
    pub(crate) underline: u8,
}

impl Style {
    pub(crate) fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// What erasing leaves.
    pub(crate) fn erased(self) -> Self {
        Self { bg: self.bg, ..Self::default() }
    }
}
