//! What jobs in the background say while no script runs: read, so that they never stand still, and
//! kept for the next script to begin with.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use sandbank_protocol::StreamKind;
use tokio::time::Instant;

use super::Shell;
use super::report::Said;
use super::streams::{answer, read_any};
use crate::commands::Commands;
use crate::commands::source::AsyncDescriptor;
use crate::limits::{MAX_IDLE_OUTPUT_BYTES, SHELL_EXPORTS_PAUSE};

#[derive(Default)]
pub(super) struct IdleOutput {
    kept: VecDeque<(StreamKind, Bytes)>,
    bytes: usize,
}

impl IdleOutput {
    /// The oldest goes first when there is too much.
    fn push(&mut self, stream: StreamKind, data: Bytes) {
        let data = newest(data);
        self.bytes += data.len();
        self.kept.push_back((stream, data));
        while self.bytes > MAX_IDLE_OUTPUT_BYTES {
            let Some((_, dropped)) = self.kept.pop_front() else { break };
            self.bytes -= dropped.len();
        }
    }

    pub(super) fn take(&mut self) -> VecDeque<(StreamKind, Bytes)> {
        self.bytes = 0;
        std::mem::take(&mut self.kept)
    }
}

/// As much of the end as is kept at all, from the beginning of a character on.
fn newest(mut data: Bytes) -> Bytes {
    let surplus = data.len().saturating_sub(MAX_IDLE_OUTPUT_BYTES);
    if surplus == 0 {
        return data;
    }
    let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
    let inside = data[surplus..].iter().take_while(is_inside).count();
    data.split_off(surplus + inside)
}

/// Until the process with this pid is gone.
pub(super) async fn read(commands: Rc<Commands>, shell: Rc<Shell>, pid: i32) {
    let mut listening_from = None;
    loop {
        let mut place = shell.process.lock().await;
        let Some(process) = place.as_mut().filter(|process| process.pid == pid) else { return };
        let super::Process { stdout, stderr, terminal, death, answers, reports, .. } = process;
        let awaits_exports = reports.awaits_exports();
        // Not at once: who reads line by line is woken for each, in the next script's time.
        let from = *listening_from.get_or_insert_with(|| Instant::now() + SHELL_EXPORTS_PAUSE);
        if !awaits_exports {
            listening_from = None;
        }
        tokio::select! {
            biased;
            () = shell.wanted.notified() => listening_from = None,
            _ = death.told() => {
                shell.memory.borrow_mut().hear_rest(process);
                commands.launcher.return_lease(process.lease.as_ref());
                *place = None;
                return;
            }
            (stream, data) = read_any(&commands.buffers, stdout, stderr, terminal) => {
                shell.idle.borrow_mut().push(stream, data);
            }
            answer = later(answers, from), if awaits_exports => {
                for said in reports.push(&answer) {
                    if let Said::Exports { turn, exports } = said {
                        shell.memory.borrow_mut().keep_exports(turn, exports);
                    }
                }
            }
        }
        drop(place);
        tokio::task::yield_now().await;
    }
}

async fn later(answers: &AsyncDescriptor, from: Instant) -> Vec<u8> {
    if from > Instant::now() {
        tokio::time::sleep_until(from).await;
    }
    answer(answers).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept() {
        let mut idle = IdleOutput::default();
        let piece = Bytes::from(vec![b'x'; MAX_IDLE_OUTPUT_BYTES / 2]);
        for _ in 0..5 {
            idle.push(StreamKind::Stdout, piece.clone());
        }
        idle.push(StreamKind::Stderr, Bytes::from_static(b"last"));
        let kept = idle.take();
        assert!(kept.len() == 2 && kept[1].1 == "last", "{}", kept.len());
        assert_eq!((idle.bytes, idle.take().len()), (0, 0));
        idle.push(StreamKind::Stdout, "é".repeat(MAX_IDLE_OUTPUT_BYTES).into());
        idle.push(
            StreamKind::Stdout,
            Bytes::from(format!("é{}", "x".repeat(MAX_IDLE_OUTPUT_BYTES - 1))),
        );
        let kept = idle.take();
        assert_eq!((kept.len(), kept[0].1.len()), (1, MAX_IDLE_OUTPUT_BYTES - 1));
    }
}
