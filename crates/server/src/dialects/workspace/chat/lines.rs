//! A program's output as lines, each stream on its own, with the way back after a broken channel.

use std::collections::VecDeque;

use sandbank_channel::OutputStream;
use sandbank_protocol::{CommandId, Ending, FaultCode, Frame, StreamKind};

use super::super::place::{Place, Refusal};
use crate::app::App;
use crate::dialects::sandboxd::reconnect::Retry;
use crate::limits::MAX_CHAT_LINE_BYTES;

pub(super) struct Lines {
    app: App,
    place: Place,
    command: CommandId,
    output: OutputStream,
    /// The last frame all of whose lines were told.
    seq: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    ready: VecDeque<Said>,
    retry: Retry,
}

/// What a program said or did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Line { text: String, is_error: bool, seq: u64 },
    Ended(Ending),
}

impl Lines {
    /// From behind the frame `after` on.
    pub(super) async fn open(
        app: App,
        place: Place,
        command: CommandId,
        after: u64,
    ) -> Result<Self, Refusal> {
        let id = &command;
        let output =
            place.run(|client| async move { client.output(id, after, true).await }).await?;
        Ok(Self {
            app,
            place,
            command,
            output,
            seq: after,
            stdout: Vec::new(),
            stderr: Vec::new(),
            ready: VecDeque::new(),
            retry: Retry::default(),
        })
    }

    pub(super) fn command(&self) -> &CommandId {
        &self.command
    }

    /// The next line, or the ending. Safe to be dropped while it waits.
    pub(super) async fn next(&mut self) -> Said {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return said;
            }
            match self.output.next().await {
                Ok(Some(frame)) => self.take(frame),
                Ok(None) => self.reopen().await,
                Err(error) if error.is_broken() => self.reopen().await,
                Err(error) => self.lost(&error.to_string()),
            }
        }
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Output { seq, stream, data, .. } if seq > self.seq => {
                self.seq = seq;
                self.retry = Retry::default();
                let is_error = stream == StreamKind::Stderr;
                let partial = if is_error { &mut self.stderr } else { &mut self.stdout };
                partial.extend_from_slice(&data);
                self.cut(is_error);
            }
            Frame::Dropped { seq, bytes, .. } if seq > self.seq => {
                self.seq = seq;
                self.stdout.clear();
                let text = format!("{bytes} bytes of output are no longer kept");
                self.ready.push_back(Said::Line { text, is_error: true, seq });
            }
            Frame::Ended { ending, .. } => {
                self.rest(false);
                self.rest(true);
                let ending = serde_json::from_slice(&ending).unwrap_or_else(|_| Ending::Lost {
                    reason: "its runner told no valid ending".to_owned(),
                });
                self.ready.push_back(Said::Ended(ending));
            }
            Frame::Output { .. } | Frame::Dropped { .. } | Frame::Heartbeat { .. } => {}
        }
    }

    /// Takes the whole lines; one that is too long is told in parts.
    fn cut(&mut self, is_error: bool) {
        let partial = if is_error { &mut self.stderr } else { &mut self.stdout };
        while let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = partial.drain(..=end).collect();
            let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
            if !text.is_empty() {
                self.ready.push_back(Said::Line { text, is_error, seq: self.seq });
            }
        }
        if partial.len() > MAX_CHAT_LINE_BYTES {
            self.rest(is_error);
        }
    }

    fn rest(&mut self, is_error: bool) {
        let partial = if is_error { &mut self.stderr } else { &mut self.stdout };
        let text = String::from_utf8_lossy(partial.trim_ascii()).into_owned();
        partial.clear();
        if !text.is_empty() {
            self.ready.push_back(Said::Line { text, is_error, seq: self.seq });
        }
    }

    async fn reopen(&mut self) {
        while self.retry.again().await {
            let Ok(place) = Place::of(&self.app).await else { continue };
            let (id, after) = (&self.command, self.seq);
            let opened = place.run(|client| async move { client.output(id, after, true).await });
            match opened.await {
                Ok(output) => {
                    self.output = output;
                    self.place = place;
                    return;
                }
                Err(Refusal::Fault(FaultCode::NotFound | FaultCode::Invalid, _)) => break,
                Err(_) => {}
            }
        }
        self.lost("the workspace does not answer");
    }

    fn lost(&mut self, reason: &str) {
        self.ready.push_back(Said::Ended(Ending::Lost { reason: reason.to_owned() }));
    }
}
