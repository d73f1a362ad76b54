//! Lines as bytes for a terminal that shows none of them yet.

use std::io::Write;

use crate::cells::Cell;
use crate::charset::Charsets;
use crate::marks::Marks;
use crate::row::Row;
use crate::screen::Screen;
use crate::style::{
    BLINK, BOLD, Color, ColorKind, DIM, INVERSE, INVISIBLE, ITALIC, OVERLINE, STRIKE, Style,
};

const FLAGS: [(u16, &str); 8] = [
    (BOLD, ";1"),
    (DIM, ";2"),
    (ITALIC, ";3"),
    (BLINK, ";5"),
    (INVERSE, ";7"),
    (INVISIBLE, ";8"),
    (STRIKE, ";9"),
    (OVERLINE, ";53"),
];

/// Blank places that are passed over rather than written.
const MIN_GAP: usize = 8;

pub(crate) struct Painter<'a> {
    pub(crate) out: Vec<u8>,
    /// How the terminal writes now.
    pen: Style,
    marks: &'a Marks,
    cols: usize,
    /// Colours and attributes of the text, too.
    styled: bool,
}

/// More bytes than there may be.
#[derive(Debug)]
pub(crate) struct TooLong;

impl<'a> Painter<'a> {
    pub(crate) fn new(marks: &'a Marks, cols: usize, styled: bool) -> Self {
        Self { out: Vec::new(), pen: Style::default(), marks, cols, styled }
    }

    /// Writing to a vector does not fail.
    pub(crate) fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }

    pub(crate) fn go_to(&mut self, x: usize, y: usize) {
        self.put(format_args!("\x1b[{};{}H", y + 1, x + 1));
    }

    fn go_to_column(&mut self, x: usize) {
        self.put(format_args!("\x1b[{}G", x + 1));
    }

    pub(crate) fn style(&mut self, style: Style) {
        if style != self.pen {
            self.set_style(style);
        }
    }

    pub(crate) fn set_style(&mut self, style: Style) {
        self.pen = style;
        self.put(format_args!("\x1b[0"));
        for (_, code) in FLAGS.iter().filter(|(flag, _)| style.has(*flag)) {
            self.put(format_args!("{code}"));
        }
        match style.underline {
            0 => {}
            1 => self.put(format_args!(";4")),
            kind => self.put(format_args!(";4:{kind}")),
        }
        self.color(style.fg, 30, 38);
        self.color(style.bg, 40, 48);
        match style.line.kind() {
            ColorKind::Default => {}
            ColorKind::Indexed(index) => self.put(format_args!(";58:5:{index}")),
            ColorKind::Rgb(r, g, b) => self.put(format_args!(";58:2::{r}:{g}:{b}")),
        }
        self.put(format_args!("m"));
    }

    fn color(&mut self, color: Color, few: u8, any: u8) {
        match color.kind() {
            ColorKind::Default => {}
            ColorKind::Indexed(index @ 0..8) => self.put(format_args!(";{}", few + index)),
            ColorKind::Indexed(index @ 8..16) => self.put(format_args!(";{}", few + 52 + index)),
            ColorKind::Indexed(index) => self.put(format_args!(";{any};5;{index}")),
            ColorKind::Rgb(r, g, b) => self.put(format_args!(";{any};2;{r};{g};{b}")),
        }
    }

    pub(crate) fn charsets(&mut self, charsets: Charsets) {
        for (set, charset) in b"()*+".iter().zip(charsets.sets) {
            self.out.extend([0x1b, *set, charset.designator()]);
        }
        match charsets.used {
            0 => self.out.push(0x0f),
            1 => self.out.push(0x0e),
            2 => self.out.extend(b"\x1bn"),
            _ => self.out.extend(b"\x1bo"),
        }
    }

    /// One character with its combining ones, as the terminal writes now.
    pub(crate) fn text(&mut self, cell: Cell) {
        let text = std::iter::once(cell.text).chain(self.marks.of(cell.marks).iter().copied());
        for character in text {
            self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Every line of a cleared screen without margins.
    pub(crate) fn screen(&mut self, screen: &Screen, limit: usize) -> Result<(), TooLong> {
        for (y, row) in screen.rows.iter().enumerate() {
            let joined = y > 0 && row.wrapped;
            let joins = screen.rows.get(y + 1).is_some_and(|next| next.wrapped);
            self.row(row, y, joined, joins);
            if self.out.len() > limit {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    /// A line that goes on with the one above it is begun by writing on there, and one that goes on
    /// below it is written to its end, so that the terminal knows of it.
    fn row(&mut self, row: &Row, y: usize, joined: bool, joins: bool) {
        let filled = !row.fill().is_fresh();
        let erased = Cell::blank(row.fill().style.erased());
        let plain_fill = row.fill() == erased && !joins && self.styled;
        let written = row.stored().iter().rposition(|cell| !cell.is_fresh()).map_or(0, |at| at + 1);
        let end = match () {
            () if joins || (filled && !plain_fill) => self.cols,
            () if filled => row.stored().len(),
            () => written,
        };
        let end = end.max(usize::from(joined));
        if end == 0 && !filled {
            return;
        }
        if !joined {
            self.go_to(0, y);
        }
        let mut x = 0;
        // Counted once, however it is written then.
        let mut blank_to = 0;
        while x < end {
            let cell = row.get(x);
            if x >= blank_to {
                blank_to = x + (x..end).take_while(|x| row.get(*x).is_fresh()).count();
            }
            let gap = blank_to - x;
            if gap >= MIN_GAP && x + gap < end && !(joined && x == 0) {
                x += gap;
                self.go_to_column(x);
                continue;
            }
            if self.styled {
                self.style(cell.style);
            }
            // A half of a wide character alone does not occur; it would be passed over.
            if cell.width > 0 {
                self.text(cell);
            }
            x += usize::from(cell.width.max(1));
            if (cell.marks != 0 || !is_width_certain(cell.text)) && x < end {
                self.go_to_column(x);
            }
        }
        if filled && plain_fill && end < self.cols {
            self.style(row.fill().style);
            self.out.extend(b"\x1b[K");
        }
    }
}

/// Terminals agree on the width of these; after any other one it is said where to go on.
fn is_width_certain(text: char) -> bool {
    matches!(text, ' '..='\u{2ff}' | '\u{2500}'..='\u{259f}' | '\u{3041}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}
