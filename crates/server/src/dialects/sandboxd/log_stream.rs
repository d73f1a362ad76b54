//! One reader of one command's output.
//!
//! Frames become lines in one reused buffer; whatever is there is sent at once, several frames
//! together when they are ready. When the channel breaks the stream goes on from the last frame
//! it has seen. It ends cleanly only with the command, the sandbox, or the end of what is kept;
//! in every other case the transfer breaks off, so that a client never mistakes a part for all.

use std::io;
use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, stream};
use sandbank_channel::{ChannelError, OutputStream};
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{Ending, FaultCode, Frame};

use super::logs::LogQuery;
use super::reconnect::{Retry, command_error, is_broken, refused_as};
use crate::app::App;
use crate::error::ApiResult;
use crate::extract::CommandPath;
use crate::limits::LOG_CHUNK_BYTES;
use crate::ndjson::{Encoding, ending_record, frame_record};
use crate::streams::StreamPermit;

pub(super) struct LogStream {
    app: App,
    path: CommandPath,
    /// Keeps the sandbox busy, and tells when it ends.
    attached: Attached,
    output: OutputStream,
    /// What a look ahead found, to be handled after what is in the buffer was sent.
    ahead: Option<Result<Option<Frame>, ChannelError>>,
    follow: bool,
    encoding: Encoding,
    last_seq: u64,
    buffer: BytesMut,
    retry: Retry,
    finished: bool,
    _permit: StreamPermit,
}

impl LogStream {
    pub(super) async fn open(app: App, path: CommandPath, query: &LogQuery) -> ApiResult<Self> {
        let permit = app.streams().open()?;
        let attached = app.orchestrator().attach(&path.sandbox).await?;
        let (command, after, follow) = (&path.command, query.after, query.follow);
        let output = attached
            .run(|client| async move { client.output(command, after, follow).await })
            .await
            .map_err(command_error)?;
        Ok(Self {
            app,
            path,
            attached,
            output,
            ahead: None,
            follow: query.follow,
            encoding: query.encoding,
            last_seq: query.after,
            buffer: BytesMut::new(),
            retry: Retry::default(),
            finished: false,
            _permit: permit,
        })
    }

    pub(super) fn chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut this| async move {
            let chunk = this.chunk().await.transpose()?;
            this.finished |= chunk.is_err();
            Some((chunk, this))
        })
    }

    /// The next lines; none when all is said.
    async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        while !self.finished && self.buffer.is_empty() {
            self.advance().await?;
        }
        while !self.finished && self.buffer.len() < LOG_CHUNK_BYTES && self.ahead.is_none() {
            match self.output.next().now_or_never() {
                Some(Ok(Some(frame))) => self.write(&frame),
                ready => {
                    self.ahead = ready;
                    break;
                }
            }
        }
        let chunk = self.buffer.split().freeze();
        if self.ahead.is_none() && chunk.len() < LOG_CHUNK_BYTES {
            // Nothing more for now: a silent stream keeps no buffer.
            self.buffer = BytesMut::new();
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// Waits for one thing to happen and handles it.
    async fn advance(&mut self) -> io::Result<()> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => tokio::select! {
                biased;
                next = self.output.next() => next,
                cause = self.attached.ended() => {
                    self.lost(&cause.to_string());
                    return Ok(());
                }
                () = self.app.shutdown().draining() => {
                    return Err(io::Error::other("the daemon is shutting down"));
                }
            },
        };
        match next {
            Ok(Some(frame)) => {
                self.write(&frame);
                Ok(())
            }
            Ok(None) if !self.follow => {
                self.finished = true;
                Ok(())
            }
            Ok(None) => self.reconnect().await,
            Err(error) if error.is_broken() => self.reconnect().await,
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn write(&mut self, frame: &Frame) {
        match frame {
            Frame::Output { seq, .. } | Frame::Dropped { seq, .. } => {
                if *seq <= self.last_seq {
                    return; // Sent twice around a reconnect.
                }
                self.last_seq = *seq;
                self.retry = Retry::default();
            }
            Frame::Ended { .. } => self.finished = true,
            Frame::Heartbeat { .. } => {}
        }
        frame_record(&mut self.buffer, frame, self.encoding);
    }

    fn lost(&mut self, reason: &str) {
        let ending = Ending::Lost { reason: reason.to_owned() };
        ending_record(&mut self.buffer, &ending, self.last_seq, None);
        self.finished = true;
    }

    /// Every try counts until new output comes: a runner that closes streams at once does not
    /// keep the daemon busy.
    async fn reconnect(&mut self) -> io::Result<()> {
        while self.retry.again().await {
            match self.reopen().await {
                Ok(ControlFlow::Break(())) => return Ok(()),
                Ok(ControlFlow::Continue(())) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Err(io::Error::other("the sandbox does not answer"))
    }

    /// Breaks when the stream is open again, or it is known that it never will be.
    async fn reopen(&mut self) -> Result<ControlFlow<()>, OrchestratorError> {
        let attached = match self.app.orchestrator().attach(&self.path.sandbox).await {
            Ok(attached) => attached,
            Err(OrchestratorError::Gone { cause, .. }) => {
                self.lost(&cause.to_string());
                return Ok(ControlFlow::Break(()));
            }
            Err(OrchestratorError::NotFound(_)) => {
                self.lost("the sandbox is gone");
                return Ok(ControlFlow::Break(()));
            }
            Err(error) if is_broken(&error) => return Ok(ControlFlow::Continue(())),
            Err(error) => return Err(error),
        };
        let opened = attached.output(&self.path.command, self.last_seq, self.follow).await;
        self.attached = attached;
        match opened {
            Ok(output) => {
                self.output = output;
                Ok(ControlFlow::Break(()))
            }
            Err(error) if is_forgotten(&error) => {
                self.lost("the sandbox no longer knows the command");
                Ok(ControlFlow::Break(()))
            }
            Err(error) if may_pass(&error) => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error.into()),
        }
    }
}

/// The runner does not know the command, or what was read of it: nothing will bring it back.
fn is_forgotten(error: &ChannelError) -> bool {
    refused_as(error, FaultCode::NotFound) || refused_as(error, FaultCode::Invalid)
}

/// A refusal for any other reason, such as a limit, says nothing about the command.
fn may_pass(error: &ChannelError) -> bool {
    error.is_broken() || matches!(error, ChannelError::Refused(_))
}

#[cfg(test)]
mod tests {
    use sandbank_protocol::Fault;

    use super::*;

    #[test]
    fn only_a_forgotten_command_is_lost_and_other_refusals_are_tried_again() {
        let refused = |code| ChannelError::Refused(Fault::new(code, "no"));
        for code in [FaultCode::NotFound, FaultCode::Invalid] {
            assert!(is_forgotten(&refused(code)), "{code:?}");
        }
        for code in [FaultCode::LimitReached, FaultCode::Internal, FaultCode::Closed] {
            assert!(!is_forgotten(&refused(code)) && may_pass(&refused(code)), "{code:?}");
        }
        let violation = ChannelError::Violation("odd".to_owned());
        assert!(!is_forgotten(&violation) && !may_pass(&violation));
    }
}
