//! Signals and terminal sizes.

use axum::extract::State;
use sandbank_protocol::SignalRequest;
use serde::Deserialize;
use utoipa::ToSchema;

use super::command_start::Pty;
use super::command_view::CommandView;
use super::reconnect::command_error;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{CommandPath, Strict};
use crate::reply::Reply;

/// Linux's numbers, the same on every architecture we run on.
const NAMES: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("TERM", 15),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("WINCH", 28),
];
const HIGHEST: i32 = 64;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalBody {
    signal: Signal,
    /// Also what the command left behind in other process groups and sessions.
    #[serde(default)]
    tree: bool,
}

/// `"TERM"`, `"SIGTERM"` or `15`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Signal {
    Number(i32),
    Name(String),
}

impl Signal {
    pub(super) fn number(&self) -> ApiResult<i32> {
        let known = match self {
            Self::Number(number) => (1..=HIGHEST).contains(number).then_some(*number),
            Self::Name(name) => {
                let bare = name.strip_prefix("SIG").unwrap_or(name);
                NAMES.iter().find(|(name, _)| *name == bare).map(|(_, number)| *number)
            }
        };
        known.ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            ApiError::bad_request("bad_signal", "there is no such signal")
                .with_hint(format!("use a number from 1 to {HIGHEST}, or {}", names.join(", ")))
        })
    }
}

/// Send a signal to a command's process group.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{commandId}/signal", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)), request_body = SignalBody,
    responses((status = 200, body = CommandView), (status = "default", body = ErrorBody)))]
pub(super) async fn signal(
    State(app): State<App>,
    caller: Caller,
    path: CommandPath,
    Strict(body): Strict<SignalBody>,
) -> ApiResult<Reply<CommandView>> {
    let (signal, by) = (body.signal.number()?, caller.name.to_string());
    let (command, request) = (&path.command, &SignalRequest { signal, by, tree: body.tree });
    let attached = app.orchestrator().attach(&path.sandbox).await?;
    let status = attached.run(|client| async move { client.signal(command, request).await }).await;
    Ok(Reply(status.map_err(command_error)?.into()))
}

/// Change the size of a command's terminal.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{commandId}/resize", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)), request_body = Pty,
    responses((status = 200, body = CommandView), (status = "default", body = ErrorBody)))]
pub(super) async fn resize(
    State(app): State<App>,
    path: CommandPath,
    Strict(size): Strict<Pty>,
) -> ApiResult<Reply<CommandView>> {
    let (command, size) = (&path.command, size.into());
    let attached = app.orchestrator().attach(&path.sandbox).await?;
    let status = attached.run(|client| async move { client.resize(command, size).await }).await;
    Ok(Reply(status.map_err(command_error)?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        let number = |json: &str| {
            serde_json::from_str::<Signal>(json).ok().and_then(|signal| signal.number().ok())
        };
        assert_eq!(number("\"TERM\""), Some(15));
        assert_eq!(number("\"SIGKILL\""), Some(9));
        assert_eq!(number("15"), Some(15));
        for bad in ["0", "-1", "65", "\"term\"", "\"SIGSIGTERM\"", "1.5", "null", "[]"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
