//! What a runner writes to its error output: into the log, bounded, and the end of it remembered for
//! whoever asks why a machine did not start.

use std::sync::{Arc, Mutex, PoisonError};

use sandbank_engine::SandboxId;

use crate::limits::{STDERR_LINE_BYTES, STDERR_LINES};

#[derive(Clone)]
pub(crate) struct Complaints {
    id: SandboxId,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    line: Vec<u8>,
    lines: usize,
    last: Option<String>,
}

impl Complaints {
    pub(crate) fn of(id: &SandboxId) -> Self {
        Self { id: id.clone(), heard: Arc::default() }
    }

    /// The last line that was complete.
    pub(crate) fn last(&self) -> Option<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    pub(super) fn hear(&self, bytes: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = STDERR_LINE_BYTES.saturating_sub(heard.line.len());
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            heard.line.extend_from_slice(&text[..text.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut heard.line);
                heard.take_line(&self.id, &line);
            }
        }
    }
}

impl Heard {
    fn take_line(&mut self, id: &SandboxId, line: &[u8]) {
        // A line of a machine must not look like several of ours.
        let text: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
        if self.lines < STDERR_LINES {
            tracing::warn!(%id, line = text, "a runner complains");
        } else if self.lines == STDERR_LINES {
            tracing::warn!(%id, "a runner complains too much; the rest is not logged");
        }
        self.lines = self.lines.saturating_add(1);
        self.last = Some(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_cut() {
        let complaints = Complaints::of(&SandboxId::random());
        complaints.hear(b"runner: ca");
        assert_eq!(complaints.last(), None);
        complaints.hear(b"nnot\x1b[1m\nnext");
        assert_eq!(complaints.last().as_deref(), Some("runner: cannot[1m"));
        complaints.hear(&[b'x'; 5000]);
        complaints.hear(b"\n");
        assert_eq!(complaints.last().map(|line| line.len()), Some(STDERR_LINE_BYTES));
    }
}
