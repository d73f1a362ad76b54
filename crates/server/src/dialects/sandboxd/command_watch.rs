//! What the log says about a command: that it started, and how and when it ended. One that has
//! ended by the time its start is answered has one line for both.
//!
//! Only the program's name is logged: arguments, scripts and variables may hold secrets.

use sandbank_engine::SandboxId;
use sandbank_protocol::{CommandSpec, CommandStatus, Ending};

use super::wait;
use crate::app::App;
use crate::auth::Caller;
use crate::request::Carried;

/// `status` is the one that came with the start.
pub(in crate::dialects) fn log(
    app: &App,
    sandbox: &SandboxId,
    caller: &Caller,
    spec: &CommandSpec,
    status: &CommandStatus,
) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let program = program(spec);
    if let Some(end) = End::of(status) {
        return tracing::info!(
            %sandbox, command = %spec.id, program, words = spec.argv.len(),
            timeout_ms = spec.timeout_ms, by = %caller.name, exit_code = end.exit_code,
            duration_ms = end.duration_ms, bytes = end.bytes, ending = end.kind, "command ran"
        );
    }
    tracing::info!(
        %sandbox, command = %spec.id, program, words = spec.argv.len(),
        timeout_ms = spec.timeout_ms, by = %caller.name, "command started"
    );
    let (app, sandbox, command) = (app.clone(), sandbox.clone(), spec.id.clone());
    let watch = async move {
        let watched = tokio::select! {
            watched = wait::status(&app, &sandbox, &command) => watched,
            () = app.shutdown().draining() => return,
        };
        match watched {
            Ok(status) => log_ended(&sandbox, &status),
            Err(error) => {
                tracing::info!(%sandbox, %command, code = error.code, "command not seen to end");
            }
        }
    };
    tokio::spawn(Carried::now().over(watch));
}

/// A shell's only word is the whole script.
fn program(spec: &CommandSpec) -> &str {
    match (&spec.shell, spec.argv.first()) {
        (Some(_), _) => "shell",
        (None, Some(program)) => program.rsplit('/').next().unwrap_or_default(),
        (None, None) => "",
    }
}

fn log_ended(sandbox: &SandboxId, status: &CommandStatus) {
    let Some(end) = End::of(status) else { return };
    tracing::info!(
        %sandbox, command = %status.id, exit_code = end.exit_code, duration_ms = end.duration_ms,
        bytes = end.bytes, ending = end.kind, "command ended"
    );
}

struct End {
    exit_code: Option<i32>,
    duration_ms: u64,
    bytes: u64,
    kind: &'static str,
}

impl End {
    fn of(status: &CommandStatus) -> Option<Self> {
        let ending = status.ending()?;
        let ended_at = status.ended_at_ms.unwrap_or(status.started_at_ms);
        Some(Self {
            exit_code: ending.exit_code(),
            duration_ms: ended_at.saturating_sub(status.started_at_ms),
            bytes: status.stdout_bytes.saturating_add(status.stderr_bytes),
            kind: kind(ending),
        })
    }
}

fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Exited { .. } => "exited",
        Ending::Signaled { .. } => "signaled",
        Ending::TimedOut => "timed_out",
        Ending::OomKilled => "oom_killed",
        Ending::Killed { .. } => "killed",
        Ending::Lost { .. } => "lost",
    }
}
