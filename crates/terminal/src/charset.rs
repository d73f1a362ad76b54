//! Character sets: which characters stand for others.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    Graphics,
    British,
}

/// What `` ` `` to `~` stand for in the set of lines and corners.
const GRAPHICS: [char; 31] = [
    '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼',
    '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

impl Charset {
    /// Other national sets are taken for ASCII.
    pub(crate) fn designated(by: u8) -> Self {
        match by {
            b'0' => Self::Graphics,
            b'A' => Self::British,
            _ => Self::Ascii,
        }
    }

    pub(crate) fn designator(self) -> u8 {
        match self {
            Self::Ascii => b'B',
            Self::Graphics => b'0',
            Self::British => b'A',
        }
    }

    pub(crate) fn translate(self, text: char) -> char {
        match (self, text) {
            (Self::Graphics, '`'..='~') => GRAPHICS[text as usize - '`' as usize],
            (Self::British, '#') => '£',
            _ => text,
        }
    }
}

/// The four sets, and which of them is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charsets {
    pub(crate) sets: [Charset; 4],
    pub(crate) used: usize,
}

impl Charsets {
    pub(crate) fn current(&self) -> Charset {
        self.sets[self.used]
    }
}
