//! Output that means harm.

use super::{fed, shown};
use crate::Terminal;
use crate::fuzzing::describe;
use crate::limits::{MAX_MARKED_CELLS, MAX_REPAINT_BYTES, MAX_SEQUENCE_BYTES};
use crate::row::TOUCHED;

#[test]
fn a_sequence_without_end_is_not_kept_and_swallows_what_it_would() {
    for (begin, end) in [
        ("\x1b[", "m"),
        ("\x1b]2;", "\x07"),
        ("\x1bP", "\x1b\\"),
        ("\x1b", "B"),
        ("\u{9d}2;", "\u{9c}"),
    ] {
        let filler = if begin == "\x1b" { " " } else { "1" };
        let mut first = fed(3, 20, format!("a{begin}{}", filler.repeat(10 * MAX_SEQUENCE_BYTES)));
        let repaint = first.repaint();
        assert!(repaint.len() < MAX_SEQUENCE_BYTES + 200, "{begin:?}: {}", repaint.len());
        let mut second = fed(3, 20, &repaint);
        for terminal in [&mut first, &mut second] {
            terminal.feed(format!("{filler}{filler}{end}b").as_bytes());
        }
        assert_eq!(describe(&first), describe(&second), "{begin:?}");
        assert_eq!(shown(&first), "ab", "{begin:?}");
        assert_eq!(first.title(), "");
    }
}

#[test]
fn combining_characters_are_bounded_and_their_room_is_used_again() {
    let mut terminal = Terminal::new(200, 200);
    let line = "e\u{301}".repeat(200);
    for _ in 0..200 {
        terminal.feed(line.as_bytes());
    }
    let marked = |terminal: &Terminal| {
        let rows = terminal.state.primary.rows.iter();
        rows.flat_map(|row| row.stored()).filter(|cell| cell.marks != 0).count()
    };
    assert!(marked(&terminal) <= MAX_MARKED_CELLS);
    terminal.feed(b"\x1b[2J\x1b[H");
    terminal.feed(" ".repeat(80_000).as_bytes());
    terminal.feed(b"\x1b[2J\x1b[H");
    terminal.feed(line.as_bytes());
    assert_eq!(marked(&terminal), 200);
    let mut tall = fed(1, 5, "e");
    tall.feed("\u{301}".repeat(1_000).as_bytes());
    assert_eq!(shown(&tall).chars().count(), 8);
}

#[test]
fn the_most_colourful_screen_loses_its_colours_rather_than_being_too_long() {
    let mut terminal = Terminal::new(500, 500);
    let mut output = Vec::new();
    for n in 0..250_000u32 {
        let [_, r, g, b] = n.to_be_bytes();
        let cell =
            format!("\x1b[1;3;4:3;5;7;9;53;38;2;{r};{g};{b};48;2;{b};{g};{r};58:2::1:2:{b}mé");
        output.extend(cell.as_bytes());
    }
    terminal.feed(&output);
    let repaint = terminal.repaint();
    assert!(repaint.len() < MAX_REPAINT_BYTES, "{}", repaint.len());
    assert_eq!(shown(&fed(500, 500, &repaint)), shown(&terminal));
    terminal.feed(b"\x1b[m\x1b[H\x1b[2Jplain");
    let again = fed(500, 500, terminal.repaint());
    assert_eq!(describe(&again), describe(&terminal));
}

/// Each of these touches the whole screen with a few bytes.
#[test]
fn costly_sequences_are_cheap_enough_to_come_in_megabytes() {
    for sequence in [
        "\x1b[2J",
        "\x1b#8",
        "\x1b[999L",
        "\x1b[999S",
        "\x1b[999T",
        "\x1b[999@",
        "\x1b[999P",
        "\x1bM",
        "x\x1b[999b",
        "\x1b[?1049h\x1b[?1049l",
        "\x1b[999I",
        "\x1b[999Z",
        "\x1b[3g",
        "\x1bc",
        "\x1b[999Gx\x1b[2K",
        "漢\x1b[1K",
        "\x1b[22;0t",
    ] {
        let mut terminal = Terminal::new(500, 500);
        terminal.feed("漢x".repeat(100_000).as_bytes());
        terminal.feed(sequence.repeat(100_000 / sequence.len()).as_bytes());
        assert_eq!(terminal.size(), (500, 500));
    }
}

/// One print into a line with wide characters moves and mends all of it: two lines' places per byte.
#[test]
fn what_repetitions_cost_is_bounded_by_the_bytes_that_ask_for_them() {
    let inserting = 2 * 500 + 100;
    for (sequence, places_per_byte) in [
        ("x\x1b[999b", 60),
        ("e\u{301}\x1b[999b", 60),
        ("e\u{301}\u{302}\u{303}\x1b[999b", 60),
        ("漢\x1b[999b", 60),
        ("\x1bcx\x1b[999b", 60),
        ("\x1b[4h漢x\x1b[999b", inserting),
        ("\x1b[4h\x1b[Hx\x1b[999b", inserting),
        ("\x1b[4he\u{301}\x1b[999b", inserting),
    ] {
        let mut terminal = Terminal::new(500, 500);
        terminal.feed("漢x".repeat(100_000).as_bytes());
        let output = sequence.repeat(60_000 / sequence.len());
        let before = TOUCHED.get();
        terminal.feed(output.as_bytes());
        let each = (TOUCHED.get() - before) / output.len() as u64;
        assert!(each < places_per_byte, "{sequence:?}: {each} places for each byte");
    }
}

#[test]
fn programs_that_draw_with_repetitions_get_all_of_them() {
    let mut terminal = Terminal::new(50, 80);
    for _ in 0..100 {
        terminal.feed("\x1b[H".as_bytes());
        terminal.feed("─\x1b[78b┐".repeat(50).as_bytes());
    }
    assert_eq!(shown(&terminal).matches('─').count(), 79 * 50);
}
