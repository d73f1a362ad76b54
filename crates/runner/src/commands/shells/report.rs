//! What a shell says when a script is over, taken apart. Anything a script can reach may have
//! written it, so it is bounded and never more than a claim about that script's own shell.

use std::collections::VecDeque;

use super::words::LAST_WORDS;
use crate::limits::MAX_SHELL_REPORT_BYTES;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) turn: u64,
    /// The script was interrupted, and the shell asked afterwards.
    pub(super) interrupted: bool,
    pub(super) status: u8,
    pub(super) cwd: String,
    /// A script that exports again what was exported. None when that was too much.
    pub(super) exports: Option<Vec<u8>>,
}

#[derive(Default)]
pub(super) struct Reports {
    unread: Vec<u8>,
    /// Bytes of a field that is too long and is left out.
    overlong: bool,
    /// The last ones. Something else may have been written before an answer.
    fields: VecDeque<Option<Vec<u8>>>,
}

const FIELDS: usize = 4;

impl Reports {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Report> {
        let mut reports = Vec::new();
        for byte in bytes {
            if *byte == 0 {
                let field = std::mem::take(&mut self.unread);
                self.fields.push_back((!std::mem::take(&mut self.overlong)).then_some(field));
                if self.fields.len() > FIELDS {
                    self.fields.pop_front();
                }
                reports.extend(understand(&self.fields));
            } else if self.unread.len() < MAX_SHELL_REPORT_BYTES {
                self.unread.push(*byte);
            } else {
                self.overlong = true;
            }
        }
        reports
    }
}

/// What a shell that ended by itself left: its directory and exported variables.
pub(super) fn last_words(left: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut fields = left.split(|byte| *byte == 0);
    let (nothing, name) = (fields.next()?, fields.next()?);
    let (cwd, exports) = (fields.next()?, fields.next()?);
    // The last is ended by a NUL, too.
    fields.next()?;
    let is_told = nothing.is_empty() && name == LAST_WORDS.as_bytes();
    is_told.then(|| Some((String::from_utf8(cwd.to_vec()).ok()?, exports.to_vec())))?
}

fn understand(fields: &VecDeque<Option<Vec<u8>>>) -> Option<Report> {
    let text = |place: usize| std::str::from_utf8(fields.get(place)?.as_ref()?).ok();
    let (turn, status, cwd) = (text(1)?, text(2)?, text(3)?);
    let (turn, interrupted) = match turn.strip_suffix('!') {
        Some(turn) => (turn, true),
        None => (turn, false),
    };
    let (turn, status) = (turn.parse().ok()?, status.parse().ok()?);
    let (cwd, exports) = (cwd.to_owned(), fields.front()?.clone());
    Some(Report { turn, interrupted, status, cwd, exports })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_however_they_are_cut() {
        let wire = b"export A='x'\n\x003\x000\x00/a b\x00junk\x00\x001\x00\x004!\x00130\x00/\x00";
        let first = Report {
            turn: 3,
            interrupted: false,
            status: 0,
            cwd: "/a b".to_owned(),
            exports: Some(b"export A='x'\n".to_vec()),
        };
        for size in 1..=wire.len() {
            let mut reports = Reports::default();
            let all: Vec<_> = wire.chunks(size).flat_map(|part| reports.push(part)).collect();
            assert_eq!(all.len(), 2, "cut at {size}");
            assert_eq!(all[0], first);
            assert!(all[1].interrupted && all[1].turn == 4 && all[1].status == 130);
        }
    }

    #[test]
    fn last_words_are_told_from_a_script_and_from_half_of_them() {
        let whole = b"\0sandbank\0/a b\0export A='x'\n\0";
        let told = ("/a b".to_owned(), b"export A='x'\n".to_vec());
        assert_eq!(last_words(whole), Some(told));
        for size in 0..whole.len() {
            assert_eq!(last_words(&whole[..size]), None, "cut at {size}");
        }
        assert_eq!(last_words(b"echo\0sandbank\0/\0\0"), None);
    }

    #[test]
    fn what_is_too_long_is_left_out_and_not_kept() {
        let mut reports = Reports::default();
        let long = vec![b'x'; MAX_SHELL_REPORT_BYTES + 1];
        let wire = [long.as_slice(), b"\x001\x000\x00/\x00"].concat();
        let all = reports.push(&wire);
        assert_eq!((all.len(), &all[0].exports), (1, &None));
    }
}
