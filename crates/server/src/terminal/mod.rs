//! One viewer of one terminal: what it is shown, and what it types.
//!
//! Knows the sandbox and its runner, but no dialect: [`viewer::view`] drives a WebSocket whose
//! frames a [`viewer::Spelling`] writes and reads. The journal of the command is the only buffer. A
//! viewer that falls behind is painted the screen anew where there is one, and is told how much it
//! missed where there is none; nobody waits for it.

pub(crate) mod closing;
mod hands;
pub(crate) mod viewer;

use std::ops::ControlFlow;

use bytes::Bytes;
use http::StatusCode;
use sandbank_channel::{ChannelError, OutputStream, TerminalScreen};
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{Ending, FaultCode, Frame};

use crate::app::App;
use crate::dialects::sandboxd::reconnect::{Retry, command_error, is_broken, refused_as};
use crate::error::{ApiError, ApiResult};
use crate::extract::CommandPath;
use crate::streams::StreamPermit;
use closing::Closing;
pub(crate) use hands::Hands;

/// Where a viewer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With the output numbered above this.
    After(u64),
    /// With the screen as it is.
    Repaint,
}

/// What a viewer is to be shown next.
#[derive(Debug)]
pub(crate) enum Shown {
    /// Paint this instead of whatever was shown; the output numbered above its `seq` follows.
    Screen(TerminalScreen),
    /// The next piece of output; numbers have no gaps but for what is told as missed.
    Output(Bytes),
    /// Output up to `seq` is kept no more, and there is no screen to paint.
    Missed { seq: u64, bytes: u64 },
    /// Nothing follows.
    Ended(Ending),
}

/// A viewer's hold on a terminal.
pub(crate) struct Terminal {
    app: App,
    path: CommandPath,
    /// Keeps the sandbox busy, and tells when it ends.
    attached: Attached,
    output: OutputStream,
    last_seq: u64,
    /// To be shown before anything else.
    painting: Option<TerminalScreen>,
    /// Output that is kept no more, to be made up for: its last number and its size.
    missed: Option<(u64, u64)>,
    retry: Retry,
    ended: bool,
    _permit: StreamPermit,
}

impl Terminal {
    pub(crate) async fn open(app: App, path: CommandPath, begin: Beginning) -> ApiResult<Self> {
        let permit = app.streams().open()?;
        let attached = app.orchestrator().attach(&path.sandbox).await?;
        let command = &path.command;
        let status = attached.run(|client| async move { client.command(command).await });
        if !status.await.map_err(command_error)?.pty {
            let message = "the command runs on no terminal";
            return Err(ApiError::new(StatusCode::CONFLICT, "not_a_terminal", message)
                .with_hint("start it with a pty, or read its output at logs"));
        }
        let painting = match begin {
            Beginning::After(_) => None,
            Beginning::Repaint => {
                let screen = attached.run(|client| async move { client.screen(command).await });
                Some(screen.await.map_err(screen_error)?)
            }
        };
        let after = match (begin, &painting) {
            (Beginning::After(seq), _) => seq,
            (Beginning::Repaint, painting) => painting.as_ref().map_or(0, |p| p.screen.seq),
        };
        let output = attached
            .run(|client| async move { client.look_on(command, after).await })
            .await
            .map_err(command_error)?;
        Ok(Self {
            app,
            path,
            attached,
            output,
            last_seq: after,
            painting,
            missed: None,
            retry: Retry::default(),
            ended: false,
            _permit: permit,
        })
    }

    /// Number of the last output that was shown, or need not be.
    pub(crate) fn seq(&self) -> u64 {
        self.last_seq
    }

    /// The size, where there is a screen and it was not painted yet.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        self.painting.as_ref().map(|painting| (painting.screen.rows, painting.screen.cols))
    }

    /// For what this viewer does to the terminal, beside what it is shown.
    pub(crate) fn hands(&self, by: &str) -> Hands {
        Hands::new(self.app.clone(), self.path.clone(), by.to_owned())
    }

    /// What comes next. Nothing is lost when the wait for it is given up.
    pub(crate) async fn next(&mut self) -> Result<Shown, Closing> {
        if self.ended {
            return std::future::pending().await;
        }
        loop {
            if let Some(painting) = self.painting.take() {
                return Ok(Shown::Screen(painting));
            }
            if let Some((seq, bytes)) = self.missed {
                let painted = self.catch_up().await?;
                self.missed = None;
                if painted {
                    continue;
                }
                self.last_seq = seq;
                return Ok(Shown::Missed { seq, bytes });
            }
            let next = tokio::select! {
                biased;
                next = self.output.next() => next,
                cause = self.attached.ended() => return Ok(self.lost(&cause.to_string())),
                () = self.app.shutdown().draining() => return Err(Closing::ShuttingDown),
            };
            let shown = match next {
                Ok(Some(frame)) => self.take(frame)?,
                Err(error) if !error.is_broken() => return Err(Closing::broken(&error)),
                Ok(None) | Err(_) => self.reconnect().await?,
            };
            if let Some(shown) = shown {
                return Ok(shown);
            }
        }
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Shown>, Closing> {
        match frame {
            Frame::Heartbeat { .. } => Ok(None),
            Frame::Ended { ending, .. } => {
                let ending = serde_json::from_slice(&ending)
                    .map_err(|error| Closing::Internal(error.to_string()))?;
                self.ended = true;
                Ok(Some(Shown::Ended(ending)))
            }
            // Sent twice around a reconnect.
            frame if frame.seq() <= self.last_seq => Ok(None),
            Frame::Output { seq, data, .. } => {
                self.last_seq = seq;
                self.retry = Retry::default();
                Ok(Some(Shown::Output(data)))
            }
            Frame::Dropped { seq, bytes, .. } => {
                self.retry = Retry::default();
                self.missed = Some((seq, bytes));
                Ok(None)
            }
        }
    }

    /// The viewer is behind: it goes on with the screen as it is now. False where there is none.
    pub(crate) async fn catch_up(&mut self) -> Result<bool, Closing> {
        let command = &self.path.command;
        let screen = self.attached.run(|client| async move { client.screen(command).await }).await;
        let Ok(painting) = screen else { return Ok(false) };
        let seq = painting.screen.seq;
        if seq <= self.last_seq {
            // It was the painting itself that took so long.
            return Ok(false);
        }
        let opened = self.attached.run(|client| async move { client.look_on(command, seq).await });
        match opened.await {
            Ok(output) => {
                (self.output, self.last_seq) = (output, seq);
                self.painting = Some(painting);
                Ok(true)
            }
            Err(error) if is_broken(&error) => Ok(false),
            Err(error) => Err(Closing::Internal(error.to_string())),
        }
    }

    fn lost(&mut self, reason: &str) -> Shown {
        self.ended = true;
        Shown::Ended(Ending::Lost { reason: reason.to_owned() })
    }

    /// Every try counts until new output comes.
    async fn reconnect(&mut self) -> Result<Option<Shown>, Closing> {
        while self.retry.again().await {
            match self.reopen().await {
                Ok(ControlFlow::Break(shown)) => return Ok(shown),
                Ok(ControlFlow::Continue(())) => {}
                Err(error) => return Err(Closing::Internal(error.to_string())),
            }
        }
        Err(Closing::Unreachable)
    }

    /// Breaks when the output is open again, or it is known that it never will be.
    async fn reopen(&mut self) -> Result<ControlFlow<Option<Shown>>, OrchestratorError> {
        let attached = match self.app.orchestrator().attach(&self.path.sandbox).await {
            Ok(attached) => attached,
            Err(OrchestratorError::Gone { cause, .. }) => {
                return Ok(ControlFlow::Break(Some(self.lost(&cause.to_string()))));
            }
            Err(OrchestratorError::NotFound(_)) => {
                return Ok(ControlFlow::Break(Some(self.lost("the sandbox is gone"))));
            }
            Err(error) if is_broken(&error) => return Ok(ControlFlow::Continue(())),
            Err(error) => return Err(error),
        };
        let opened = attached.look_on(&self.path.command, self.last_seq).await;
        self.attached = attached;
        match opened {
            Ok(output) => {
                self.output = output;
                Ok(ControlFlow::Break(None))
            }
            Err(error) if is_forgotten(&error) => {
                let reason = "the sandbox no longer knows the command";
                Ok(ControlFlow::Break(Some(self.lost(reason))))
            }
            Err(ChannelError::Refused(_)) => Ok(ControlFlow::Continue(())),
            Err(error) if error.is_broken() => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error.into()),
        }
    }
}

/// The runner does not know the command, or what was read of it: nothing will bring it back.
fn is_forgotten(error: &ChannelError) -> bool {
    refused_as(error, FaultCode::NotFound) || refused_as(error, FaultCode::Invalid)
}

/// For what needs a screen.
pub(crate) fn screen_error(error: OrchestratorError) -> ApiError {
    let error = command_error(error);
    match error.code {
        "conflict" => error.with_hint("start it with a pty and \"screen\":true"),
        _ => error,
    }
}
