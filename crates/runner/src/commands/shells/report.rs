//! What a shell says when a script is over, taken apart. Anything a script can reach may have
//! written it, so it is bounded and never more than a claim about that script's own shell.

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
    fields: Vec<Option<Vec<u8>>>,
}

const FIELDS: usize = 4;

impl Reports {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Report> {
        let mut reports = Vec::new();
        for byte in bytes {
            if *byte == 0 {
                let field = std::mem::take(&mut self.unread);
                self.fields.push((!std::mem::take(&mut self.overlong)).then_some(field));
                if self.fields.len() == FIELDS {
                    reports.extend(understand(std::mem::take(&mut self.fields)));
                }
            } else if self.unread.len() < MAX_SHELL_REPORT_BYTES {
                self.unread.push(*byte);
            } else {
                self.overlong = true;
            }
        }
        reports
    }
}

fn understand(fields: Vec<Option<Vec<u8>>>) -> Option<Report> {
    let mut fields = fields.into_iter();
    let mut text = || String::from_utf8(fields.next()??).ok();
    let (turn, status, cwd) = (text()?, text()?, text()?);
    let (turn, interrupted) = match turn.strip_suffix('!') {
        Some(turn) => (turn, true),
        None => (turn.as_str(), false),
    };
    let (turn, status) = (turn.parse().ok()?, status.parse().ok()?);
    Some(Report { turn, interrupted, status, cwd, exports: fields.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_however_they_are_cut() {
        let wire =
            b"3\x000\x00/a b\x00export A='x'\n\x00junk\x00\x00\x00\x004!\x00130\x00/\x00\x00";
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
    fn what_is_too_long_is_left_out_and_not_kept() {
        let mut reports = Reports::default();
        let long = vec![b'x'; MAX_SHELL_REPORT_BYTES + 1];
        let wire = [b"1\x000\x00/\x00".as_slice(), &long, b"\x00"].concat();
        let all = reports.push(&wire);
        assert_eq!((all.len(), &all[0].exports), (1, &None));
    }
}
