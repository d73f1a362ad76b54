//! One viewer of one terminal: what it is shown, and what it types.
//!
//! Knows the runner and where it is (`ground.rs`), but no dialect: [`viewer::view`] drives a WebSocket whose
//! frames a [`viewer::Spelling`] writes and reads. The journal of the command is the only buffer. A
//! viewer that falls behind is painted the screen anew where there is one, and is told how much it
//! missed where there is none; nobody waits for it.

pub(crate) mod closing;
mod ground;
mod hands;
pub(crate) mod viewer;

use std::ops::ControlFlow;

use bytes::Bytes;
use http::StatusCode;
use sandbank_channel::{OutputStream, TerminalScreen};
use sandbank_protocol::{CommandId, Ending, FaultCode, Frame};

use crate::app::App;
use crate::dialects::sandboxd::reconnect::Retry;
use crate::error::{ApiError, ApiResult};
use crate::streams::StreamPermit;
use closing::Closing;
pub(crate) use ground::{Ground, GroundError, Hold};
pub(crate) use hands::Hands;

/// Where a viewer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With the output numbered above this.
    After(u64),
    /// Where it was before: with what is numbered above `after`, of which nothing at or below
    /// `seen` is missed when it is kept no more.
    Again { after: u64, seen: u64 },
    /// With the screen as it is.
    Repaint,
}

/// What a viewer is to be shown next.
#[derive(Debug)]
pub(crate) enum Shown {
    /// Paint this instead of whatever was shown; the output numbered above its `seq` follows.
    Screen(TerminalScreen),
    /// The next piece of output; numbers have no gaps but for what is told as missed.
    Output { seq: u64, data: Bytes },
    /// Output up to `seq` is kept no more, and there is no screen to paint.
    Missed { seq: u64, bytes: u64 },
    /// Nothing follows.
    Ended(Ending),
}

/// A viewer's hold on a terminal.
pub(crate) struct Terminal {
    app: App,
    ground: Ground,
    command: CommandId,
    /// Keeps the sandbox busy, and tells when it ends.
    hold: Hold,
    output: OutputStream,
    last_seq: u64,
    /// The viewer has seen up to here before.
    seen: u64,
    /// To be shown before anything else.
    painting: Option<TerminalScreen>,
    /// Output that is kept no more, to be made up for: its last number and its size.
    missed: Option<(u64, u64)>,
    retry: Retry,
    ended: bool,
    _permit: StreamPermit,
}

impl Terminal {
    pub(crate) async fn open(
        app: App,
        ground: Ground,
        command: CommandId,
        begin: Beginning,
    ) -> ApiResult<Self> {
        let permit = app.streams().open()?;
        let hold = ground.hold(&app).await?;
        let id = &command;
        if !hold.run(|client| async move { client.command(id).await }).await?.pty {
            let message = "the command runs on no terminal";
            return Err(ApiError::new(StatusCode::CONFLICT, "not_a_terminal", message)
                .with_hint("start it with a pty, or read its output at logs"));
        }
        let (painting, after, seen) = match begin {
            Beginning::After(seq) => (None, seq, 0),
            Beginning::Again { after, seen } => (None, after, seen),
            Beginning::Repaint => {
                let screen = hold.run(|client| async move { client.screen(id).await }).await;
                let painting = screen.map_err(screen_error)?;
                let seq = painting.screen.seq;
                (Some(painting), seq, 0)
            }
        };
        let output = hold.look_on(&command, after).await?;
        Ok(Self {
            app,
            ground,
            command,
            hold,
            output,
            last_seq: after,
            seen,
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
        Hands::new(self.app.clone(), self.ground.clone(), self.command.clone(), by.to_owned())
    }

    /// What comes next. Nothing is lost when the wait for it is given up.
    pub(crate) async fn next(&mut self) -> Result<Shown, Closing> {
        if self.ended {
            self.app.shutdown().draining().await;
            return Err(Closing::ShuttingDown);
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
                // Before the output, which may never come to an end.
                () = self.app.shutdown().draining() => return Err(Closing::ShuttingDown),
                next = self.output.next() => next,
                cause = self.hold.ended() => return Ok(self.lost(&cause)),
            };
            let shown = match next {
                Ok(Some(frame)) => self.take(frame)?,
                Err(error) if !error.is_broken() => return Err(Closing::broken(&error)),
                Ok(None) | Err(_) => {
                    let shutdown = self.app.shutdown().clone();
                    tokio::select! {
                        shown = self.reconnect() => shown?,
                        () = shutdown.draining() => return Err(Closing::ShuttingDown),
                    }
                }
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
                Ok(Some(Shown::Output { seq, data }))
            }
            Frame::Dropped { seq, .. } if seq <= self.seen => {
                self.last_seq = seq;
                Ok(None)
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
        let command = &self.command;
        let screen = self.hold.run(|client| async move { client.screen(command).await }).await;
        let Ok(painting) = screen else { return Ok(false) };
        let seq = painting.screen.seq;
        if seq <= self.last_seq {
            // It was the painting itself that took so long.
            return Ok(false);
        }
        match self.hold.look_on(command, seq).await {
            Ok(output) => {
                (self.output, self.last_seq) = (output, seq);
                self.painting = Some(painting);
                Ok(true)
            }
            Err(error) if error.is_broken() => Ok(false),
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
                // A breaker that opened meanwhile, or a secret that is taken no more.
                Err(error) if error.is_away() => return Err(Closing::Unreachable),
                Err(error) => return Err(Closing::Internal(error.to_string())),
            }
        }
        Err(Closing::Unreachable)
    }

    /// Breaks when the output is open again, or it is known that it never will be.
    async fn reopen(&mut self) -> Result<ControlFlow<Option<Shown>>, GroundError> {
        let hold = match self.ground.hold(&self.app).await {
            Ok(hold) => hold,
            Err(error) => match error.gone() {
                Some(reason) => return Ok(ControlFlow::Break(Some(self.lost(&reason)))),
                None if error.is_broken() => return Ok(ControlFlow::Continue(())),
                None => return Err(error),
            },
        };
        let opened = hold.look_on(&self.command, self.last_seq).await;
        self.hold = hold;
        match opened {
            Ok(output) => {
                self.output = output;
                Ok(ControlFlow::Break(None))
            }
            Err(error) if is_forgotten(&error) => {
                let reason = "the sandbox no longer knows the command";
                Ok(ControlFlow::Break(Some(self.lost(reason))))
            }
            Err(error) if error.is_refused() || error.is_broken() => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error),
        }
    }
}

/// The runner does not know the command, or what was read of it: nothing will bring it back.
fn is_forgotten(error: &GroundError) -> bool {
    error.refused_as(FaultCode::NotFound) || error.refused_as(FaultCode::Invalid)
}

/// For what needs a screen.
pub(crate) fn screen_error(error: impl Into<GroundError>) -> ApiError {
    let error = ApiError::from(error.into());
    match error.code {
        "conflict" => error.with_hint("start it with a pty and \"screen\":true"),
        _ => error,
    }
}
