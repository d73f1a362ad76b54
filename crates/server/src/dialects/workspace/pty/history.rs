//! What somebody who comes to a running terminal is shown first.
//!
//! The screen is painted exactly, from the runner's model of it. Above it is what has scrolled away,
//! as far as the runner keeps it: its text, colours and edits within a line. What else a program
//! sent is left out, because played again it would move what is painted, and a question to the
//! terminal would be answered into the shell a second time.

use sandbank_protocol::{CommandId, Frame};

use super::super::place::{Place, Refusal};
use crate::limits::MAX_SEQUENCE_CHARS;

/// What every painting begins with: it ends what is going on and clears everything, also what has
/// scrolled away.
const RESET: &[u8] = b"\x18\x1bc";

/// Back to where a reset terminal begins, with what has scrolled away still there.
const CLEAR: &[u8] = b"\x1b[0m\x1b[H\x1b[2J";

/// The end of what was written up to the frame `seq`.
pub(super) async fn read(
    place: &Place,
    command: &CommandId,
    seq: u64,
    limit: usize,
) -> Result<Vec<u8>, Refusal> {
    let mut output =
        place.run(|client| async move { client.output(command, 0, false).await }).await?;
    let mut kept: Vec<u8> = Vec::new();
    let mut is_cut = false;
    // A connection that breaks here costs text that has scrolled away, and nothing else.
    while let Ok(Some(frame)) = output.next().await {
        match frame {
            Frame::Output { seq: number, data, .. } if number <= seq => {
                kept.extend_from_slice(&data);
                if kept.len() > 2 * limit + data.len() {
                    kept.drain(..kept.len() - limit);
                    is_cut = true;
                }
            }
            Frame::Dropped { .. } => is_cut = true,
            Frame::Heartbeat { .. } => {}
            Frame::Output { .. } | Frame::Ended { .. } => break,
        }
    }
    let surplus = kept.len().saturating_sub(limit);
    kept.drain(..surplus);
    if is_cut || surplus > 0 {
        let line = kept.iter().position(|byte| *byte == b'\n').map_or(kept.len(), |at| at + 1);
        kept.drain(..line);
    }
    Ok(kept)
}

/// What has scrolled away, then the painting; at most `limit` bytes unless the painting alone is
/// longer.
pub(super) fn joined(written: &[u8], repaint: &[u8], limit: usize) -> Vec<u8> {
    let Some(painting) = repaint.strip_prefix(RESET) else { return repaint.to_vec() };
    let room = limit.saturating_sub(repaint.len() + CLEAR.len());
    let scrolled = scrolled(&String::from_utf8_lossy(written));
    let mut from = scrolled.len().saturating_sub(room);
    if from > 0 {
        from = scrolled[from.saturating_sub(1)..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(scrolled.len(), |at| from.saturating_sub(1) + at + 1);
    }
    match &scrolled[from..] {
        [] => repaint.to_vec(),
        scrolled => [RESET, scrolled, CLEAR, painting].concat(),
    }
}

/// Text, and what changes a line or a colour; nothing of full-screen programs.
fn scrolled(text: &str) -> Vec<u8> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_alternate = false;
    while let Some(c) = rest.chars().next() {
        if c != '\u{1b}' {
            let is_text = !c.is_control() || matches!(c, '\r' | '\n' | '\t' | '\u{8}');
            if is_text && !is_alternate {
                out.push(c);
            }
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let length = sequence(rest);
        let (whole, after) = rest.split_at(length);
        rest = after;
        match whole {
            "\u{1b}[?1049h" | "\u{1b}[?1047h" | "\u{1b}[?47h" => is_alternate = true,
            "\u{1b}[?1049l" | "\u{1b}[?1047l" | "\u{1b}[?47l" => {
                // It may have begun before what is kept.
                if !is_alternate {
                    out.clear();
                }
                is_alternate = false;
            }
            _ if is_alternate => {}
            _ if edits_a_line(whole) => out.push_str(whole),
            _ => {}
        }
    }
    out.into_bytes()
}

/// `CSI` with numbers only, and a letter that moves or erases within the line, or changes colours.
fn edits_a_line(sequence: &str) -> bool {
    let Some(words) = sequence.strip_prefix("\u{1b}[") else { return false };
    words.ends_with(['m', 'K', 'C', 'D', 'G', 'P', 'X', '@'])
        && words[..words.len() - 1].bytes().all(|b| matches!(b, b'0'..=b'9' | b';' | b':'))
}

/// How long the sequence is that this begins with.
fn sequence(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1).take(MAX_SEQUENCE_CHARS);
    let Some((at, kind)) = chars.next() else { return text.len() };
    let end = |found: Option<(usize, char)>| found.map_or(text.len(), |(at, c)| at + c.len_utf8());
    match kind {
        '[' => end(chars.find(|(_, c)| !matches!(c, '\u{20}'..='\u{3f}'))),
        ']' | 'P' | 'X' | '^' | '_' => {
            let Some((at, c)) = chars.find(|(_, c)| matches!(c, '\u{7}' | '\u{1b}')) else {
                return text.len();
            };
            if c == '\u{1b}' && text[at..].starts_with("\u{1b}\\") {
                at + 2
            } else if c == '\u{1b}' {
                at
            } else {
                at + 1
            }
        }
        ' '..='/' => end(chars.next()),
        _ => at + kind.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> String {
        String::from_utf8(scrolled(text)).unwrap()
    }

    #[test]
    fn text_colours_and_edits_stay_and_everything_else_goes() {
        assert_eq!(
            kept("a\r\n\x1b[1;31mred\x1b[0m\x08\x1b[Kb"),
            "a\r\n\x1b[1;31mred\x1b[0m\x08\x1b[Kb"
        );
        for gone in [
            "\x1b[6n",
            "\x1b[c",
            "\x1b[>0c",
            "\x1b[2J",
            "\x1b[H",
            "\x1b[?25l",
            "\x1b]0;title\x07",
            "\x1b]52;c;?\x1b\\",
            "\x1bP+q544e\x1b\\",
            "\x1b(0",
            "\x1bc",
            "\x1b[5;5r",
            "\x07",
            "\x0e",
            "\x1b[?1;2m",
            "\x1b7",
        ] {
            assert_eq!(kept(&format!("a{gone}b")), "ab", "{gone:?}");
        }
        assert_eq!(kept("a\x1b["), "a");
        assert_eq!(kept("a\x1b]never ends"), "a");
    }

    #[test]
    fn nothing_of_a_full_screen_program_stays() {
        assert_eq!(kept("one\n\x1b[?1049hvim\x1b[?1049ltwo"), "one\ntwo");
        assert_eq!(kept("rest of vim\x1b[?1049ltwo"), "two");
        assert_eq!(kept("one\n\x1b[?1049hvim"), "one\n");
    }

    #[test]
    fn the_painting_is_whole_whatever_fits_before_it() {
        let repaint = b"\x18\x1bcPAINT";
        let whole = joined(b"one\r\ntwo\r\n", repaint, 1000);
        assert_eq!(whole, b"\x18\x1bcone\r\ntwo\r\n\x1b[0m\x1b[H\x1b[2JPAINT");
        let limit = repaint.len() + CLEAR.len() + 7;
        assert_eq!(
            joined(b"one\r\ntwo\r\n", repaint, limit),
            b"\x18\x1bctwo\r\n\x1b[0m\x1b[H\x1b[2JPAINT"
        );
        assert_eq!(joined(b"one\r\n", repaint, 3), repaint);
        assert_eq!(joined(b"", repaint, 1000), repaint);
    }
}
