//! A repaint at any cut, and then the rest, against all of it.

use proptest::prelude::*;

use super::fed;
use crate::Terminal;
use crate::fuzzing::describe;

/// What programs write: a prompt being edited, an editor, a monitor, a pager, progress, and things
/// nobody should write.
pub(super) const SESSIONS: [&str; 9] = [
    "user@box:~$ ls -l\x1b[3D\x1b[4hx\x1b[4l\x1b[K\x08\x08 \x1b[C\x1b[2Ptab\there\r\n\x1b[?2004h\x1b]0;user@box\x07$ ",
    "shell$ vi\r\n\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;9r\x1b[?12h\x1b[?12l\x1b[22;2t\
     \x1b]2;vi – naïve\x1b\\\x1b[2J\x1b[?25l\x1b[1;1Hfn main() {\x1b[38;2;255;100;0m\x1b[4:3m\x1b[58:2::9:9:9mlet\x1b[m x;\x1b[2;1H\x1b[94m~\x1b[3;1H~\x1b[0m\
     \x1b[10;1H\x1b[7m-- INSERT --\x1b[27m\x1b[1;9r\x1b[5;3H\x1b[L\x1b[M\x1bM\x1b[?25h\x1b[2 q\x1b[?1002h\x1b[?1006h\x1b[3;4H\
     \x1b[?1006l\x1b[?1002l\x1b[r\x1b[?1l\x1b>\x1b[?1049l\x1b[23;0;0t\x1b[?2004lshell$ ",
    "\x1b[H\x1b[2J\x1b(B\x1b[m\x1b[1mTasks:\x1b[m\x1b[30;42m  12 \x1b[39;49m run\x1b[K\r\n\x1b[48;5;17m\x1b[38;5;226mCPU\x1b[K\r\n\x1b[m\x1b[30;46m  PID USER\x1b[K\x1b[m\x1b[4d\
     \x1b[1;32m  1 root\x1b[40X\x1b[5d\x1b[31m42 x\x1b[3S\x1b[T\x1b[6;2H\x1b(0lqqqk\x1b(B\x1b[7;2H\x1b(0x\x1b(B漢字\x1b(0x\x1b(B",
    "\x1b[?1049h\x1b[?1h\x1b=\rline one\x1b[m\r\n\x1b[7mline two is longer than the screen is wide\x1b[27m\x1b[K\r\n:\x1b[K\x1bM\x1bM\x1b[10;1H\x1b[K",
    "10%\r20%\r\x1b[K30%\x1b[2K\r[###   ]\x1b[1A\x1b[100C<\x1b[1B>\x1b[3b\x1b[0;1;2;3;4;5;7;8;9;53mall\x1b[22;23;24m some\x1b[0m",
    "wide: 漢字漢字漢字e\u{301}\u{302}👍🏽👨‍👩‍👧 \x1b[5G.\x1b[2Gx\x1b[3P\x1b[4h字\x1b[4l\u{9b}31mred\u{9d}2;c1 title\u{9c}!",
    "\x1b[3g\x1b[5G\x1bH\x1b[11G\x1bH\r\ta\tb\tc\x1b[Z|\x1b7\x1b[2;4r\x1b[?6h\x1b[1;1Horigin\n\n\n\nmore\x1b8back\x1b[?6l\x1b[?7labcdefghijklmnopqrstuvw\x1b[?7h",
    "\x1bP1$r0m\x1b\\\x1bXignored\x1b\\\x1b[1;2;3<;4zb\x1b#8\x1b[2;2H\x1b[1J\x1b[!p\x1b[5;5H\x1b[0J\x1b)0\x0eqqq\x0f\x1bcafter\x1b[20h\nlnm",
    "abcdefghijklmnopqrstuvwxyz0123456789\x1b[31m\x1b[Kx\x1b7\x1b[42m0123456789012345678901234567890123456789\x1b8y\x1b[?1047h\x1b[41m\x1b[2Jz\x1b[?1047l",
];

fn check_every_cut(rows: u16, cols: u16, session: &[u8]) {
    let whole = describe(&fed(rows, cols, session));
    let mut first = Terminal::new(rows, cols);
    for at in 0..=session.len() {
        let mut second = fed(rows, cols, first.repaint());
        let place = session[..at].escape_ascii();
        assert_eq!(describe(&second), describe(&first), "{rows}x{cols} after {place}");
        second.feed(&session[at..]);
        assert_eq!(describe(&second), whole, "{rows}x{cols} all of it, cut after {place}");
        if let Some(byte) = session.get(at) {
            first.feed(&[*byte]);
        }
    }
}

#[test]
fn sessions_are_the_same_wherever_they_are_cut() {
    for session in SESSIONS {
        for (rows, cols) in [(10, 24), (5, 7), (24, 80), (1, 1), (2, 3)] {
            check_every_cut(rows, cols, session.as_bytes());
        }
    }
    check_every_cut(10, 24, SESSIONS.concat().as_bytes());
}

#[test]
fn lines_that_went_on_still_go_on() {
    let terminal = fed(6, 5, "abcdefgh\r\nnext\r\nabcd漢x\r\n12345     6");
    let again = fed(6, 5, terminal.repaint());
    let wrapped = |terminal: &Terminal| -> Vec<bool> {
        terminal.state.primary.rows.iter().map(|row| row.wrapped).collect()
    };
    assert_eq!(wrapped(&terminal)[1..], wrapped(&again)[1..]);
    assert_eq!(wrapped(&terminal).iter().filter(|wrapped| **wrapped).count(), 3);
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(String::new()), (0u16..30).prop_map(|n| n.to_string())];
    let modes = prop::sample::select(vec![
        "4", "20", "?1", "?5", "?6", "?7", "?25", "?47", "?1047", "?1048", "?1049", "?2004",
        "?1000", "?1003", "?1006", "?1004", "?66", "?12",
    ]);
    let finals = prop::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abdefgmrsu".to_vec());
    let sgr = prop::sample::select(vec![
        "0",
        "1",
        "3",
        "4",
        "7",
        "31",
        "42",
        "95",
        "38;5;200",
        "48;2;1;2;3",
        "4:3",
        "58:5:9",
        "22",
        "38:2::7:8:9",
        "9",
        "53",
        "39",
        "49",
    ]);
    prop_oneof![
        4 => "[ -~]{1,12}".prop_map(String::into_bytes),
        2 => "[漢字e\u{301}é─👍\u{200d}]{1,4}".prop_map(String::into_bytes),
        3 => (number.clone(), number.clone(), finals)
            .prop_map(|(a, b, last)| format!("\x1b[{a};{b}{}", char::from(last)).into_bytes()),
        2 => sgr.prop_map(|sgr| format!("\x1b[{sgr}m").into_bytes()),
        2 => (modes, any::<bool>())
            .prop_map(|(mode, on)| format!("\x1b[{mode}{}", if on { 'h' } else { 'l' }).into_bytes()),
        2 => prop::sample::select(vec![
            "\r\n", "\n", "\r", "\t", "\x08", "\x0e", "\x0f", "\x1b7", "\x1b8", "\x1bD", "\x1bE",
            "\x1bH", "\x1bM", "\x1bc", "\x1b=", "\x1b>", "\x1b(0", "\x1b(B", "\x1b)A", "\x1b#8",
            "\x1b[!p", "\x1b[3 q", "\x1b]2;title\x07", "\x1b[22;0t", "\x1b[23;0t", "\x1bn",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..6),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_output_is_the_same_wherever_it_is_cut(
        pieces in prop::collection::vec(piece(), 0..60),
        (rows, cols) in (1u16..12, 1u16..30),
        at in any::<prop::sample::Index>(),
    ) {
        let output = pieces.concat();
        let (before, after) = output.split_at(at.index(output.len() + 1));
        let mut whole = fed(rows, cols, before);
        let mut again = fed(rows, cols, whole.repaint());
        prop_assert_eq!(describe(&again), describe(&whole));
        whole.feed(after);
        again.feed(after);
        prop_assert_eq!(describe(&again), describe(&whole));
    }

    #[test]
    fn any_output_is_the_same_in_any_pieces(
        pieces in prop::collection::vec(piece(), 0..40),
        cut in 1usize..9,
        size in (1u16..12, 1u16..30),
    ) {
        let output = pieces.concat();
        let mut chunked = Terminal::new(size.0, size.1);
        output.chunks(cut).for_each(|chunk| chunked.feed(chunk));
        prop_assert_eq!(describe(&fed(size.0, size.1, &output)), describe(&chunked));
    }
}

#[test]
fn the_committed_outputs_are_handled() {
    sandbank_test_support::replay_corpus("terminal", crate::fuzzing::terminal);
}
