//! One script in a session's shell, from its start to its ending, however often the channel breaks.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sandbank_channel::OutputStream;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{
    CommandSpec, CommandStatus, Ending, FaultCode, Frame, ShellName, ShellUse, Started, StdinMode,
};
use tracing::Instrument;

use super::id::SessionId;
use super::session::find;
use super::{cwd, error, path};
use crate::app::App;
use crate::auth::Caller;
use crate::dialects::sandboxd::command_watch;
use crate::dialects::sandboxd::reconnect::{Retry, is_broken, refused_as};
use crate::error::{ApiError, ApiResult};
use crate::limits::SESSION_JOURNAL_BYTES;
use crate::request::random_id;

pub(super) fn shell_name() -> ShellName {
    "session".parse().expect("a plain word")
}

/// Starts the shell ahead of the first script. Nobody waits for it: scripts take turns, and whichever
/// is the first finds the shell where these clients expect it.
pub(super) fn begin(app: &App, sandbox: &SandboxId) {
    let (app, sandbox) = (app.clone(), sandbox.clone());
    tokio::spawn(async move {
        let spec = spec(":".to_owned(), None);
        let begun = async { app.orchestrator().attach(&sandbox).await?.start(&spec).await };
        if let Err(error) = begun.await {
            // The first script will say what is wrong.
            tracing::debug!(%sandbox, %error, "a session's shell did not start");
        }
    });
}

fn spec(script: String, timeout: Option<Duration>) -> CommandSpec {
    CommandSpec {
        id: random_id().parse().expect("random ids are plain characters"),
        argv: vec![script],
        env: BTreeMap::new(),
        cwd: None,
        stdin: StdinMode::Null,
        pty: None,
        timeout_ms: timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        journal_bytes: Some(SESSION_JOURNAL_BYTES),
        screen: false,
        shell: Some(ShellUse {
            name: shell_name(),
            merged: true,
            begin_in: Some(path::ROOT.to_owned()),
        }),
    }
}

/// Until the runner has it and its output is open: its id makes it safe to ask again over another
/// channel.
async fn start(
    app: &App,
    mut attached: Attached,
    spec: &CommandSpec,
    patience: Option<Duration>,
) -> (Attached, Result<(Started, OutputStream), OrchestratorError>) {
    let mut retry = Retry::default();
    loop {
        let begun = async {
            let started = match patience {
                Some(patience) => attached.start_and_wait(spec, patience).await?,
                None => attached.start(spec).await?,
            };
            let id = &spec.id;
            let output = attached.run(|client| async move { client.output(id, 0, true).await });
            Ok::<_, OrchestratorError>((started, output.await?))
        };
        let error = match begun.await {
            Err(error) if is_broken(&error) => error,
            done => return (attached, done),
        };
        if !retry.again().await {
            return (attached, Err(error));
        }
        match app.orchestrator().attach(attached.sandbox_id()).await {
            Ok(again) => attached = again,
            Err(error) if is_broken(&error) => {}
            Err(error) => return (attached, Err(error)),
        }
    }
}

pub(super) struct Script {
    app: App,
    session: SessionId,
    timeout: Duration,
    status: CommandStatus,
    /// Keeps the session busy, and tells when it ends.
    attached: Attached,
    output: OutputStream,
    last_seq: u64,
    retry: Retry,
}

pub(super) enum Piece {
    Output(Bytes),
    /// Output that nobody keeps any more.
    Dropped,
    Silence,
    Ended(Ending),
}

/// What is said of a script that has ended.
pub(super) struct Outcome {
    pub(super) exit_code: i32,
    pub(super) cwd: String,
    pub(super) duration_ms: u64,
}

impl Script {
    /// With `patience` it stays with the start for that long: a short script takes fewer requests.
    pub(super) async fn start(
        app: App,
        session: SessionId,
        caller: Caller,
        text: String,
        timeout: Duration,
        patience: Option<Duration>,
    ) -> ApiResult<Self> {
        let sandbox = find(&app, &session).await?.id;
        let ended = |error| error::of_session(&session, error);
        let attached = app.orchestrator().attach(&sandbox).await.map_err(ended)?;
        let spec = spec(text, Some(timeout));
        let (shared, id) = (app.clone(), sandbox.clone());
        // A task of its own: a client that leaves does not take what is known of its script along.
        let starting = async move {
            let (attached, started) = start(&shared, attached, &spec, patience).await;
            if let Ok((Started { status, .. }, _)) = &started {
                command_watch::log(&shared, &id, &caller, &spec, status);
            }
            (attached, started)
        };
        let started = tokio::spawn(starting.in_current_span()).await;
        let (attached, started) = started.map_err(|_| ApiError::internal())?;
        let (Started { status, .. }, output) = started.map_err(ended)?;
        let (last_seq, retry) = (0, Retry::default());
        Ok(Self { app, session, timeout, status, attached, output, last_seq, retry })
    }

    pub(super) async fn next(&mut self) -> ApiResult<Piece> {
        loop {
            let next = tokio::select! {
                biased;
                next = self.output.next() => next,
                cause = self.attached.ended() => {
                    return Err(error::session_ended(&self.session, &cause));
                }
                () = self.app.shutdown().draining() => {
                    return Err(OrchestratorError::ShuttingDown.into());
                }
            };
            match next {
                Ok(Some(frame)) => {
                    if let Some(piece) = self.piece(frame)? {
                        return Ok(piece);
                    }
                }
                Ok(None) => self.reconnect().await?,
                Err(error) if error.is_broken() => self.reconnect().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn piece(&mut self, frame: Frame) -> ApiResult<Option<Piece>> {
        let seq = frame.seq();
        let is_new = seq > self.last_seq;
        let piece = match frame {
            Frame::Output { data, .. } if is_new => Piece::Output(data),
            Frame::Dropped { .. } if is_new => Piece::Dropped,
            // Sent twice around a reconnect.
            Frame::Output { .. } | Frame::Dropped { .. } => return Ok(None),
            Frame::Heartbeat { .. } => return Ok(Some(Piece::Silence)),
            Frame::Ended { ending, .. } => {
                let ending = serde_json::from_slice(&ending).map_err(|_| ApiError::internal())?;
                return Ok(Some(Piece::Ended(ending)));
            }
        };
        self.last_seq = seq;
        self.retry = Retry::default();
        Ok(Some(piece))
    }

    async fn reconnect(&mut self) -> ApiResult<()> {
        while self.retry.again().await {
            match self.reopen().await {
                Ok(()) => return Ok(()),
                Err(error) if is_broken(&error) => {}
                Err(OrchestratorError::Channel(inner))
                    if refused_as(&inner, FaultCode::NotFound) =>
                {
                    return Err(lost("the sandbox no longer knows it"));
                }
                Err(error) => return Err(error::of_session(&self.session, error)),
            }
        }
        Err(lost("the sandbox does not answer"))
    }

    async fn reopen(&mut self) -> Result<(), OrchestratorError> {
        let id = self.attached.sandbox_id().clone();
        let attached = self.app.orchestrator().attach(&id).await?;
        self.output = attached.output(&self.status.id, self.last_seq, true).await?;
        self.attached = attached;
        Ok(())
    }

    /// After its ending was seen.
    pub(super) async fn outcome(mut self, ending: Ending) -> ApiResult<Outcome> {
        if self.status.ending().is_none() {
            let command = &self.status.id;
            let asked = self.attached.run(|client| async move { client.command(command).await });
            if let Ok(status) = asked.await {
                self.status = status;
            }
        }
        let cwd = self.status.shell.as_ref().and_then(|shell| shell.cwd.as_deref());
        let cwd = cwd::shown(cwd);
        let exit_code = match &ending {
            Ending::TimedOut => return Err(timed_out(self.timeout)),
            Ending::Lost { reason } => return Err(lost(reason)),
            ending => ending.exit_code().unwrap_or(1),
        };
        let ended_at = self.status.ended_at_ms.unwrap_or(self.status.started_at_ms);
        let duration_ms = ended_at.saturating_sub(self.status.started_at_ms);
        Ok(Outcome { exit_code, cwd, duration_ms })
    }
}

fn timed_out(after: Duration) -> ApiError {
    let message = format!(
        "command timeout: timeout: command exceeded {after:?}; it was killed with all that it \
         started, and the session goes on"
    );
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "COMMAND_TIMEOUT", message)
}

fn lost(reason: &str) -> ApiError {
    let reason: String = reason.chars().take(200).collect();
    let message = format!("nobody can say how the command ended: {reason}");
    ApiError::new(StatusCode::BAD_GATEWAY, "COMMAND_LOST", message)
}
