//! The bytes that make a terminal show what this one shows, and be as it is.

use crate::limits::MAX_REPAINT_BYTES;
use crate::paint::{Painter, TooLong};
use crate::screen::{Saved, Screen};
use crate::state::State;
use crate::style::Style;
use crate::tabs::Tabs;

/// Ends whatever sequence the terminal is in, without effect, then forgets everything.
const RESET: &[u8] = b"\x18\x1bc";

pub(crate) fn repaint(state: &State, pending: [&[u8]; 2]) -> Vec<u8> {
    let mut out = paint(state, true, MAX_REPAINT_BYTES).unwrap_or_else(|TooLong| {
        paint(state, false, usize::MAX).unwrap_or_else(|TooLong| RESET.to_vec())
    });
    pending.iter().for_each(|bytes| out.extend_from_slice(bytes));
    out
}

fn paint(state: &State, styled: bool, limit: usize) -> Result<Vec<u8>, TooLong> {
    let mut painter = Painter::new(&state.marks, state.cols, styled);
    painter.out.extend(RESET);
    titles(&mut painter, state);
    screen(&mut painter, &state.primary, state, limit)?;
    if let Some(alternate) = &state.alternate {
        painter.style(Style::default());
        // Margins belong to a screen, but not in every terminal.
        painter.out.extend(b"\x1b[?1047h\x1b[r");
        screen(&mut painter, alternate, state, limit)?;
    }
    cursor(&mut painter, state);
    Ok(painter.out)
}

fn titles(painter: &mut Painter<'_>, state: &State) {
    for title in &state.titles {
        painter.put(format_args!("\x1b]2;{title}\x1b\\\x1b[22;2t"));
    }
    if !state.title.is_empty() || !state.titles.is_empty() {
        painter.put(format_args!("\x1b]2;{}\x1b\\", state.title));
    }
}

fn screen(
    painter: &mut Painter<'_>,
    screen: &Screen,
    state: &State,
    limit: usize,
) -> Result<(), TooLong> {
    painter.screen(screen, limit)?;
    if screen.tabs != Tabs::default() {
        painter.out.extend(b"\x1b[3g");
        for x in (0..state.cols).filter(|x| screen.tabs.has(*x)) {
            painter.put(format_args!("\x1b[{}G\x1bH", x + 1));
        }
    }
    if screen.saved != Saved::default() {
        let Saved { x, y, style, charsets } = screen.saved;
        painter.go_to(x, y);
        painter.style(style);
        painter.charsets(charsets);
        painter.out.extend(b"\x1b7");
        painter.charsets(Default::default());
    }
    if (screen.top, screen.bottom) != (0, state.rows - 1) {
        painter.put(format_args!("\x1b[{};{}r", screen.top + 1, screen.bottom + 1));
    }
    Ok(())
}

/// The cursor, what it writes with, and the modes. What moves the cursor comes first.
fn cursor(painter: &mut Painter<'_>, state: &State) {
    let (x, row) = (state.x, &state.screen().rows[state.y]);
    let y = match state.modes.origin {
        true => state.y - state.screen().top,
        false => state.y,
    };
    if state.modes.origin {
        painter.out.extend(b"\x1b[?6h");
    }
    let before = match x {
        0 => 0,
        x if x > 1 && row.get(x - 1).width == 0 => x - 2,
        x => x - 1,
    };
    if x == state.cols && !state.printed {
        // Only writing to the end of a line leaves the cursor behind it.
        painter.go_to(before, y);
        painter.style(row.get(before).style);
        painter.text(row.get(before));
    } else {
        painter.go_to(x, y);
    }
    painter.set_style(state.style);
    painter.charsets(state.charsets);
    modes(painter, state);
    if state.printed {
        // It may be asked to be repeated: it has to be the last thing written.
        painter.go_to(before, y);
        if state.modes.insert {
            painter.put(format_args!("\x1b[{}P", x - before));
        }
        painter.text(row.get(before));
    }
}

fn modes(painter: &mut Painter<'_>, state: &State) {
    let modes = &state.modes;
    let switches = [
        (modes.insert, "4h"),
        (modes.newline, "20h"),
        (!modes.autowrap, "?7l"),
        (!modes.visible, "?25l"),
        (modes.application_cursor, "?1h"),
        (modes.application_keypad, "?66h"),
        (modes.bracketed_paste, "?2004h"),
        (modes.focus_events, "?1004h"),
        (modes.wheel_moves, "?1007h"),
        (modes.blink, "?12h"),
        (modes.reverse_video, "?5h"),
    ];
    for (_, switch) in switches.iter().filter(|(on, _)| *on) {
        painter.put(format_args!("\x1b[{switch}"));
    }
    for mode in [modes.mouse, modes.mouse_encoding].into_iter().filter(|mode| *mode != 0) {
        painter.put(format_args!("\x1b[?{mode}h"));
    }
    if state.cursor_style != 0 {
        painter.put(format_args!("\x1b[{} q", state.cursor_style));
    }
}
