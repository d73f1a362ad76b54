//! Fuzz target: whatever a program writes, wherever it is cut, a repaint and what follows it show
//! what all of it shows.

use std::fmt::Write;

use crate::Terminal;
use crate::state::State;

/// The first bytes say the size, another size, and where to cut; the rest is output.
pub fn terminal(data: &[u8]) {
    let [rows, cols, other_rows, other_cols, at, rest @ ..] = data else { return };
    let (rows, cols) = (u16::from(rows % 40), u16::from(cols % 100));
    let (before, after) = rest.split_at(rest.len() * usize::from(*at) / 256);
    let mut whole = Terminal::new(rows, cols);
    whole.feed(before);
    if other_rows % 2 == 1 {
        whole.resize(u16::from(other_rows % 40), u16::from(other_cols % 100));
    }
    let (rows, cols) = whole.size();
    let mut again = Terminal::new(rows, cols);
    again.feed(&whole.repaint());
    assert_eq!(describe(&whole), describe(&again), "after {}", before.escape_ascii());
    whole.feed(after);
    after.chunks(1 + usize::from(*at) % 7).for_each(|chunk| again.feed(chunk));
    let (before, after) = (before.escape_ascii(), after.escape_ascii());
    assert_eq!(describe(&whole), describe(&again), "after {before} and then {after}");
}

/// Everything that shows or has an effect later, as text.
pub fn describe(terminal: &Terminal) -> String {
    let state = &terminal.state;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}x{} cursor {},{} {:?} {:?} style {} printed {} titles {:?} {:?}\n{:?}",
        state.rows,
        state.cols,
        state.x,
        state.y,
        state.style,
        state.charsets,
        state.cursor_style,
        state.printed,
        state.title,
        state.titles,
        state.modes,
    );
    for screen in [Some(&state.primary), state.alternate.as_ref()].into_iter().flatten() {
        let (margins, tabs) = ((screen.top, screen.bottom), screen.tabs);
        let _ = writeln!(text, "margins {margins:?} {tabs:?} {:?}", screen.saved);
        (0..state.rows).for_each(|y| describe_row(&mut text, state, &screen.rows[y]));
    }
    text
}

fn describe_row(text: &mut String, state: &State, row: &crate::row::Row) {
    let mut style = crate::style::Style::default();
    for x in 0..state.cols {
        let cell = row.get(x);
        if cell.style != style {
            style = cell.style;
            let _ = write!(text, "<{style:?}>");
        }
        let marks = state.marks.of(cell.marks);
        let _ = match (cell.width, marks) {
            (0, _) => write!(text, "←"),
            (_, []) => write!(text, "{}", cell.text),
            (_, marks) => write!(text, "{}{marks:?}", cell.text),
        };
    }
    text.push('\n');
}
