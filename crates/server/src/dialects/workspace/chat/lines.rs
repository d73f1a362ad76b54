//! A program's output as lines, with the way back after a broken channel.

use sandbank_channel::OutputStream;
use sandbank_protocol::{CommandId, Ending, FaultCode, Frame, StreamKind};

use super::super::place::{Place, Refusal};
use super::super::sessions::Position;
use super::cutter::{Cutter, Line};
use crate::app::App;
use crate::dialects::sandboxd::reconnect::Retry;

pub(super) struct Lines {
    app: App,
    place: Place,
    command: CommandId,
    output: OutputStream,
    /// The last frame that was taken.
    seq: u64,
    cutter: Cutter,
    /// To be told behind the last line.
    end: Option<Said>,
    retry: Retry,
}

/// What a program said or did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Line(Line),
    Ended(Ending),
    /// Nobody can say: the way to it is broken.
    Unreachable,
}

impl Lines {
    /// From that position on.
    pub(super) async fn open(
        app: App,
        place: Place,
        command: CommandId,
        from: Position,
    ) -> Result<Self, Refusal> {
        let (id, after) = (&command, from.after);
        let output =
            place.run(|client| async move { client.output(id, after, true).await }).await?;
        let (cutter, retry) = (Cutter::new(from), Retry::default());
        Ok(Self { app, place, command, output, seq: after, cutter, end: None, retry })
    }

    /// Something was said that is not told here.
    pub(super) fn is_behind_the_beginning(&self) -> bool {
        self.seq > 0
    }

    pub(super) fn command(&self) -> &CommandId {
        &self.command
    }

    /// The next line, or the ending. Safe to be dropped while it waits.
    pub(super) async fn next(&mut self) -> Said {
        loop {
            if let Some(line) = self.cutter.next() {
                return Said::Line(line);
            }
            if let Some(end) = self.end.take() {
                return end;
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
                self.cutter.take(seq, &data, stream == StreamKind::Stderr);
            }
            Frame::Dropped { seq, bytes, .. } if seq > self.seq => {
                self.seq = seq;
                self.cutter.skip(seq, bytes);
            }
            Frame::Ended { ending, .. } => {
                self.cutter.end();
                let ending = serde_json::from_slice(&ending).unwrap_or_else(|_| Ending::Lost {
                    reason: "its runner told no valid ending".to_owned(),
                });
                self.end = Some(Said::Ended(ending));
            }
            Frame::Output { .. } | Frame::Dropped { .. } | Frame::Heartbeat { .. } => {}
        }
    }

    async fn reopen(&mut self) {
        while self.retry.again().await {
            let Ok(Some(place)) = Place::existing(&self.app).await else { continue };
            let (id, after) = (&self.command, self.seq);
            let opened = place.run(|client| async move { client.output(id, after, true).await });
            match opened.await {
                Ok(output) => {
                    self.output = output;
                    self.place = place;
                    return;
                }
                Err(Refusal::Fault(FaultCode::NotFound | FaultCode::Invalid, _)) => {
                    self.lost("the workspace no longer knows it");
                    return;
                }
                Err(_) => {}
            }
        }
        self.end = Some(Said::Unreachable);
    }

    fn lost(&mut self, reason: &str) {
        self.end = Some(Said::Ended(Ending::Lost { reason: reason.to_owned() }));
    }
}
