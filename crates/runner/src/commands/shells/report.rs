//! What a shell says when a script is over, taken apart. Anything a script can reach may have
//! written it, so it is bounded and never more than a claim about that script's own shell.

use std::collections::VecDeque;

use super::words::LAST_WORDS;
use crate::limits::MAX_SHELL_REPORT_BYTES;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Report(Report),
    /// Of the shell that reported this turn: a script that exports again what was exported. None
    /// when that was too much.
    Exports {
        turn: u64,
        exports: Option<Vec<u8>>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) turn: u64,
    /// The script was interrupted, and the shell asked afterwards.
    pub(super) interrupted: bool,
    pub(super) status: u8,
    pub(super) cwd: String,
}

#[derive(Default)]
pub(super) struct Reports {
    unread: Vec<u8>,
    /// Bytes of a field that is too long and is left out.
    overlong: bool,
    /// The last ones. Something else may have been written before an answer.
    fields: VecDeque<Option<Vec<u8>>>,
    /// Of the report whose exports come next.
    reported: Option<u64>,
}

const FIELDS: usize = 3;

impl Reports {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        for byte in bytes {
            if *byte == 0 {
                let field = std::mem::take(&mut self.unread);
                let field = (!std::mem::take(&mut self.overlong)).then_some(field);
                said.extend(self.field(field));
            } else if self.unread.len() < MAX_SHELL_REPORT_BYTES {
                self.unread.push(*byte);
            } else {
                self.overlong = true;
            }
        }
        said
    }

    fn field(&mut self, field: Option<Vec<u8>>) -> Option<Said> {
        if let Some(turn) = self.reported.take() {
            self.fields.clear();
            return Some(Said::Exports { turn, exports: field });
        }
        self.fields.push_back(field);
        if self.fields.len() > FIELDS {
            self.fields.pop_front();
        }
        let report = understand(&self.fields)?;
        self.reported = Some(report.turn);
        Some(Said::Report(report))
    }

    /// Whether a report has come and what was exported has not.
    pub(super) fn awaits_exports(&self) -> bool {
        self.reported.is_some()
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
    let (turn, status, cwd) = (text(0)?, text(1)?, text(2)?);
    let (turn, interrupted) = match turn.strip_suffix('!') {
        Some(turn) => (turn, true),
        None => (turn, false),
    };
    let (turn, status) = (turn.parse().ok()?, status.parse().ok()?);
    Some(Report { turn, interrupted, status, cwd: cwd.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(turn: u64, interrupted: bool, status: u8, cwd: &str) -> Said {
        Said::Report(Report { turn, interrupted, status, cwd: cwd.to_owned() })
    }

    #[test]
    fn reports_are_found_however_they_are_cut() {
        let wire =
            b"\x003\x000\x00/a b\x00export A='x'\n\x00junk\x00\x001\x00\x004!\x00130\x00/\x00\x00";
        let exports = Some(b"export A='x'\n".to_vec());
        let expected = [
            report(3, false, 0, "/a b"),
            Said::Exports { turn: 3, exports },
            report(4, true, 130, "/"),
            Said::Exports { turn: 4, exports: Some(Vec::new()) },
        ];
        for size in 1..=wire.len() {
            let mut reports = Reports::default();
            let all: Vec<_> = wire.chunks(size).flat_map(|part| reports.push(part)).collect();
            assert_eq!(all, expected, "cut at {size}");
            assert!(!reports.awaits_exports());
        }
    }

    #[test]
    fn a_forged_report_takes_nothing_from_the_true_one() {
        let mut reports = Reports::default();
        let all = reports.push(b"\x001\x000\x00/\x00\x007\x002\x00/tmp\x00export B\n\x00");
        let exports = Some(b"export B\n".to_vec());
        assert!(all.ends_with(&[report(7, false, 2, "/tmp"), Said::Exports { turn: 7, exports }]));
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
        let wire = [b"\x001\x000\x00/\x00".as_slice(), &long, b"\x00"].concat();
        let nothing = Said::Exports { turn: 1, exports: None };
        assert_eq!(reports.push(&wire), [report(1, false, 0, "/"), nothing]);
    }
}
