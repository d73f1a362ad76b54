//! What a shell and its scripts write: output, and the answers beside it.

use bytes::Bytes;
use sandbank_protocol::StreamKind;
use tokio::time::{Instant, sleep_until};

use super::drive::Script;
use super::process::Process;
use super::{random, words};
use crate::commands::buffers::Buffers;
use crate::commands::source::{AsyncDescriptor, Pace, Read, Source};
use crate::limits::{PIPE_BYTES, SHELL_MARK_DEADLINE};

/// Of a pipe: all of an answer but for large environments.
const ANSWER_BYTES: usize = 4096;

impl Script<'_> {
    pub(super) async fn read_with_room(
        &self,
        stdout: &mut Source,
        stderr: &mut Source,
        terminal: &mut Source,
    ) -> (StreamKind, Bytes) {
        self.command.output().room().await;
        read_any(&self.commands.buffers, stdout, stderr, terminal).await
    }

    /// What the script wrote is in the pipes by the time it is over. Readers who keep up miss nothing
    /// of it.
    pub(super) async fn sweep(&self, process: &mut Process) {
        for source in [&mut process.stdout, &mut process.stderr, &mut process.terminal] {
            let mut left = PIPE_BYTES;
            while left > 0 {
                self.command.output().room().await;
                let Read::Data(data) = source.read_now(&self.commands.buffers) else { break };
                left = left.saturating_sub(data.len().max(1));
                self.commands.record(self.command, source.stream(), data);
            }
            let rest = source.take_carry();
            self.commands.record(self.command, source.stream(), rest);
        }
    }

    /// A terminal passes on what was written to it when it likes: what comes before a mark that
    /// nobody could know is the script's.
    pub(super) async fn read_to_mark(&self, process: &mut Process) {
        let Ok(mark) = random::<16>() else { return };
        let mark: String = mark.iter().map(|byte| format!("{byte:02x}")).collect();
        if process.say(&words::mark(process.kind, &mark)).is_err() {
            return;
        }
        let until = Instant::now() + SHELL_MARK_DEADLINE;
        let (mut held, mut pace) = (Vec::new(), Pace::default());
        loop {
            tokio::select! {
                read = process.terminal.read(&self.commands.buffers) => match read {
                    Read::Data(data) => {
                        held.extend_from_slice(&data);
                        pace.took(data.len()).await;
                    }
                    Read::Nothing => {}
                    Read::End => break,
                },
                () = sleep_until(until) => break,
            }
            let found = held.windows(mark.len()).position(|window| window == mark.as_bytes());
            // Without it, all but what may be its beginning is the script's.
            let ready = found.unwrap_or((held.len() + 1).saturating_sub(mark.len()));
            let rest = held.split_off(ready);
            let before = std::mem::replace(&mut held, rest);
            self.commands.record(self.command, StreamKind::Pty, before.into());
            if found.is_some() {
                held.drain(..mark.len());
                break;
            }
        }
        self.commands.record(self.command, StreamKind::Pty, held.into());
    }
}

/// From whichever stream has something first.
pub(super) async fn read_any(
    buffers: &Buffers,
    stdout: &mut Source,
    stderr: &mut Source,
    terminal: &mut Source,
) -> (StreamKind, Bytes) {
    tokio::select! {
        data = read_data(buffers, stdout) => (StreamKind::Stdout, data),
        data = read_data(buffers, stderr) => (StreamKind::Stderr, data),
        data = read_data(buffers, terminal) => (StreamKind::Pty, data),
    }
}

async fn read_data(buffers: &Buffers, source: &mut Source) -> Bytes {
    loop {
        match source.read(buffers).await {
            Read::Data(data) => return data,
            Read::Nothing => {}
            // Nobody will ever write to it again.
            Read::End => std::future::pending().await,
        }
    }
}

pub(super) async fn answer(answers: &AsyncDescriptor) -> Vec<u8> {
    loop {
        let Ok(mut ready) = answers.readable().await else { std::future::pending().await };
        let mut buffer = [0; ANSWER_BYTES];
        match rustix::io::read(answers.get_ref(), &mut buffer) {
            Ok(0) => std::future::pending().await,
            Ok(count) => return buffer[..count].to_vec(),
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::future::pending().await,
        }
    }
}

pub(super) fn answer_now(answers: &AsyncDescriptor) -> Vec<u8> {
    let (mut answer, mut buffer) = (Vec::new(), [0; ANSWER_BYTES]);
    while answer.len() <= PIPE_BYTES
        && let Ok(count @ 1..) = rustix::io::read(answers.get_ref(), &mut buffer)
    {
        answer.extend_from_slice(&buffer[..count]);
    }
    answer
}
