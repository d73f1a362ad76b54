//! What sequences do, case by case.

use super::{fed, shown};

#[test]
fn text_wraps_and_scrolls() {
    assert_eq!(shown(&fed(3, 5, "one\r\ntwo-three")), "one\ntwo-t\nhree");
    assert_eq!(shown(&fed(2, 5, "one\r\ntwo\r\nthree")), "two\nthree");
    assert_eq!(shown(&fed(2, 5, "\x1b[?7labcdefgh")), "abcdh");
}

#[test]
fn the_end_of_a_line_is_left_only_by_the_next_character() {
    let full = fed(2, 3, "abc");
    assert_eq!((full.cursor().row, full.cursor().col), (0, 2));
    assert_eq!(shown(&fed(2, 3, "abc\rx")), "xbc");
    assert_eq!(shown(&fed(2, 3, "abc\x1b[Kd")), "abc\nd");
}

#[test]
fn wide_and_combining_characters_take_their_places() {
    assert_eq!(shown(&fed(2, 4, "a漢字b")), "a漢\n字b");
    assert_eq!(shown(&fed(1, 6, "漢\x1b[2Gx")), " x");
    assert_eq!(shown(&fed(1, 6, "e\u{301}x")), "e\u{301}x");
    assert_eq!(shown(&fed(1, 6, "漢\u{301}x")), "漢\u{301}x");
    assert_eq!(shown(&fed(1, 1, "漢")), "");
}

#[test]
fn margins_scroll_alone() {
    let text = "\x1b[2;3r\x1b[1;1Htop\x1b[4;1Hlow\x1b[2;1Ha\r\nb\r\nc";
    assert_eq!(shown(&fed(4, 9, text)), "top\nb\nc\nlow");
    assert_eq!(shown(&fed(4, 9, format!("{text}\x1b[2;1H\x1bM!"))), "top\n!\nb\nlow");
}

#[test]
fn the_alternate_screen_leaves_the_other_as_it_was() {
    let mut terminal = fed(3, 20, "shell\r\n\x1b[?1049h\x1b[2;5Heditor");
    assert!(terminal.alternate());
    assert_eq!(shown(&terminal), "\n    editor");
    terminal.feed(b"\x1b[?1049l$");
    assert!(!terminal.alternate());
    assert_eq!(shown(&terminal), "shell\n$");
}

#[test]
fn lines_and_corners_come_from_their_set() {
    assert_eq!(shown(&fed(1, 9, "\x1b(0lqk\x1b(Bq")), "┌─┐q");
    assert_eq!(shown(&fed(1, 9, "\x1b)0\x0eq\x0fq")), "─q");
}

#[test]
fn inserting_deleting_and_erasing_move_the_rest() {
    assert_eq!(shown(&fed(1, 6, "abcdef\x1b[2G\x1b[2@X")), "aX bcd");
    assert_eq!(shown(&fed(1, 6, "abcdef\x1b[2G\x1b[2P")), "adef");
    assert_eq!(shown(&fed(1, 6, "abcdef\x1b[2G\x1b[2X")), "a  def");
    assert_eq!(shown(&fed(3, 3, "a\r\nb\r\nc\x1b[2H\x1b[L!")), "a\n!\nb");
    assert_eq!(shown(&fed(3, 3, "a\r\nb\r\nc\x1b[1H\x1b[M")), "b\nc");
    assert_eq!(shown(&fed(1, 6, "\x1b[4habc\x1b[1GX")), "Xabc");
    assert_eq!(shown(&fed(1, 9, "-\x1b[4b|")), "-----|");
}

#[test]
fn titles_are_set_put_aside_and_taken_back() {
    let mut terminal = fed(2, 9, "\x1b]0;shell\x07\x1b[22;0t\x1b]2;editor – x\x1b\\");
    assert_eq!(terminal.title(), "editor – x");
    terminal.feed(b"\x1b[23;0t");
    assert_eq!(terminal.title(), "shell");
}

#[test]
fn sequences_that_make_no_sense_end_where_they_should() {
    assert_eq!(shown(&fed(1, 9, "a\x1b[1<2mb\x1b[é\x1b#c")), "ab");
    assert_eq!(shown(&fed(1, 9, "a\x1bPq#0;1\x07~\x1b\\b\x1b_x\x1b\\c")), "abc");
    assert_eq!(shown(&fed(1, 9, "a\x1b[3\x18b\x1b]2;x\x1ac")), "abc");
    assert_eq!(shown(&fed(1, 9, b"a\xff\xe6\xbcb\xc3")), "a\u{fffd}\u{fffd}b");
    // A control inside a sequence has its effect at once.
    assert_eq!(shown(&fed(2, 9, "ab\x1b[\n4Gc")), "ab\n   c");
}

#[test]
fn a_smaller_size_keeps_the_line_of_the_cursor() {
    let mut terminal = fed(4, 10, "one\r\ntwo\r\nthree\r\nfour");
    terminal.resize(2, 4);
    assert_eq!(shown(&terminal), "thre\nfour");
    terminal.resize(3, 8);
    terminal.feed(b"!");
    assert_eq!(shown(&terminal), "thre\nfour!");
    terminal.resize(0, 60_000);
    assert_eq!(terminal.size(), (1, 500));
}
