//! One script in a session's shell, from its start to its ending, however often the channel breaks.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{FollowError, FollowedCommand, OrchestratorError, Said};
use sandbank_protocol::{CommandSpec, CommandStatus, Ending, ShellName, ShellUse, Started};

use super::id::SessionId;
use super::session::find;
use super::{cwd, error, path};
use crate::app::App;
use crate::auth::Caller;
use crate::dialects::sandboxd::command_watch;
use crate::error::{ApiError, ApiResult};
use crate::limits::SESSION_JOURNAL_BYTES;
use crate::request::{Carried, random_id};

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
        timeout_ms: timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        journal_bytes: Some(SESSION_JOURNAL_BYTES),
        shell: Some(ShellUse {
            name: shell_name(),
            merged: true,
            begin_in: Some(path::ROOT.to_owned()),
        }),
        ..CommandSpec::new(
            random_id().parse().expect("random ids are plain characters"),
            vec![script],
        )
    }
}

pub(super) struct Script {
    app: App,
    session: SessionId,
    timeout: Duration,
    status: CommandStatus,
    running: FollowedCommand,
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
            let orchestrator = shared.orchestrator().clone();
            let started = FollowedCommand::start(orchestrator, attached, &spec, patience).await;
            if let Ok((Started { status, .. }, _)) = &started {
                command_watch::log(&shared, &id, &caller, &spec, status);
            }
            started
        };
        let started = tokio::spawn(Carried::now().over(Box::pin(starting))).await;
        let (Started { status, .. }, running) =
            started.map_err(|_| ApiError::internal())?.map_err(ended)?;
        Ok(Self { app, session, timeout, status, running })
    }

    pub(super) async fn next(&mut self) -> ApiResult<Piece> {
        let said = tokio::select! {
            biased;
            said = self.running.next() => said,
            () = self.app.shutdown().draining() => {
                return Err(OrchestratorError::ShuttingDown.into());
            }
        };
        match said {
            Ok(Said::Output { data, .. }) => Ok(Piece::Output(data)),
            Ok(Said::Dropped { .. }) => Ok(Piece::Dropped),
            Ok(Said::Silence) => Ok(Piece::Silence),
            Ok(Said::Ended(ending)) => Ok(Piece::Ended(ending)),
            Err(FollowError::SandboxEnded(cause)) => {
                Err(error::session_ended(&self.session, &cause))
            }
            Err(FollowError::Lost(reason)) => Err(lost(reason)),
            Err(FollowError::Failed(error)) => Err(error::of_session(&self.session, error)),
        }
    }

    /// After its ending was seen.
    pub(super) async fn outcome(mut self, ending: Ending) -> ApiResult<Outcome> {
        if self.status.ending().is_none() {
            let command = &self.status.id;
            let asked =
                self.running.attached().run(|client| async move { client.command(command).await });
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
