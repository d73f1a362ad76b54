//! Repaints against the terminal they repaint, and what the model makes of sequences.

mod bounds;
mod cuts;
mod sequences;

use crate::Terminal;

pub(super) fn fed(rows: u16, cols: u16, bytes: impl AsRef<[u8]>) -> Terminal {
    let mut terminal = Terminal::new(rows, cols);
    terminal.feed(bytes.as_ref());
    terminal
}

/// The text of the screen that shows, without what is blank at the end of lines and below them.
pub(super) fn shown(terminal: &Terminal) -> String {
    let state = &terminal.state;
    let line = |row: &crate::row::Row| {
        let cells = (0..state.cols).map(|x| row.get(x)).filter(|cell| cell.width > 0);
        let mut text = String::new();
        for cell in cells {
            text.push(cell.text);
            text.extend(state.marks.of(cell.marks));
        }
        text.trim_end().to_owned()
    };
    let lines: Vec<_> = state.screen().rows.iter().map(line).collect();
    lines.join("\n").trim_end().to_owned()
}
