//! Output frames as lines, each stream on its own, and where in the frames each line ends.
//!
//! Frames are numbered and never change, so the same lines come of them for everybody, and a line
//! can be found again by the last frame with which nothing was half told and the lines since.

use std::collections::VecDeque;

use super::super::sessions::Position;
use crate::limits::MAX_CHAT_LINE_BYTES;

#[derive(Debug, Default)]
pub(super) struct Cutter {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    told: Position,
    /// Lines at the beginning that are known already.
    known: u64,
    ready: VecDeque<Line>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_error: bool,
    /// Behind it.
    pub(super) position: Position,
}

impl Cutter {
    /// For frames above `from.after`.
    pub(super) fn new(from: Position) -> Self {
        let told = Position { after: from.after, lines: 0 };
        Self { told, known: from.lines, ..Self::default() }
    }

    pub(super) fn next(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    /// Takes a frame; a line that is too long is told in parts.
    pub(super) fn take(&mut self, seq: u64, data: &[u8], is_error: bool) {
        let mut rest = data;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line = std::mem::take(self.partial(is_error));
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.tell(&line, is_error);
        }
        let partial = self.partial(is_error);
        partial.extend_from_slice(rest);
        if partial.len() > MAX_CHAT_LINE_BYTES {
            self.rest(is_error);
        }
        self.note_border(seq);
    }

    /// Frames up to this one are gone, and with them what was half told.
    pub(super) fn skip(&mut self, seq: u64, bytes: u64) {
        self.stdout.clear();
        self.stderr.clear();
        self.tell(format!("{bytes} bytes of output are no longer kept").as_bytes(), true);
        self.note_border(seq);
    }

    /// What has no line end; there is nothing behind it.
    pub(super) fn end(&mut self) {
        self.rest(false);
        self.rest(true);
    }

    fn partial(&mut self, is_error: bool) -> &mut Vec<u8> {
        if is_error { &mut self.stderr } else { &mut self.stdout }
    }

    fn rest(&mut self, is_error: bool) {
        let partial = std::mem::take(self.partial(is_error));
        self.tell(&partial, is_error);
    }

    fn tell(&mut self, line: &[u8], is_error: bool) {
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if text.is_empty() {
            return;
        }
        self.told.lines += 1;
        if self.known > 0 {
            self.known -= 1;
        } else {
            self.ready.push_back(Line { text, is_error, position: self.told });
        }
    }

    fn note_border(&mut self, seq: u64) {
        if self.stdout.is_empty() && self.stderr.is_empty() && self.known == 0 {
            self.told = Position { after: seq, lines: 0 };
            if let Some(line) = self.ready.back_mut() {
                line.position = self.told;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What somebody hears of these frames who is at that position; frames are numbered from 1.
    fn heard(frames: &[(Vec<u8>, bool)], from: Position) -> Vec<Line> {
        let mut cutter = Cutter::new(from);
        let after = usize::try_from(from.after).unwrap();
        for (index, (data, is_error)) in frames.iter().enumerate().skip(after) {
            cutter.take(index as u64 + 1, data, *is_error);
        }
        std::iter::from_fn(|| cutter.next()).collect()
    }

    #[test]
    fn streams_do_not_mix_and_empty_lines_are_none() {
        let frames =
            [(b"{\"a\":".to_vec(), false), (b"oops\n\n".to_vec(), true), (b"1}\n".to_vec(), false)];
        let texts: Vec<(String, bool)> = heard(&frames, Position::default())
            .into_iter()
            .map(|line| (line.text, line.is_error))
            .collect();
        assert_eq!(texts, [("oops".to_owned(), true), ("{\"a\":1}".to_owned(), false)]);
    }

    proptest! {
        #[test]
        fn whoever_goes_on_behind_any_line_hears_all_the_others_and_none_twice(
            frames in prop::collection::vec(("[ab\n]{0,12}", any::<bool>()), 0..12),
        ) {
            let frames: Vec<(Vec<u8>, bool)> =
                frames.into_iter().map(|(text, is_error)| (text.into_bytes(), is_error)).collect();
            let all = heard(&frames, Position::default());
            for (index, line) in all.iter().enumerate() {
                let rest: Vec<(String, bool)> = heard(&frames, line.position)
                    .into_iter()
                    .map(|line| (line.text, line.is_error))
                    .collect();
                let expected: Vec<(String, bool)> =
                    all[index + 1..].iter().map(|line| (line.text.clone(), line.is_error)).collect();
                prop_assert_eq!(rest, expected, "behind line {}", index);
            }
        }
    }
}
