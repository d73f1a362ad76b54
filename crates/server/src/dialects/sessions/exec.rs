//! A command of a session, answered when it has ended.

use std::time::Duration;

use axum::extract::State;
use sandbank_protocol::Ending;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::clean::{self, Cleaner};
use super::error::{self, SessionError};
use super::id::SessionId;
use super::script::{Piece, Script};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiResult;
use crate::extract::Strict;
use crate::limits::{
    EXEC_PATIENCE, EXEC_TIMEOUT_MS, MAX_SESSION_COMMAND_BYTES, MAX_SESSION_OUTPUT_BYTES,
};
use crate::reply::Reply;

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Exec)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecBody {
    /// For the session's shell, 1 to 1 048 576 bytes.
    #[schema(min_length = 1, max_length = 1_048_576)]
    cmd: String,
    /// 0 to 600 000; 0, none, and what is above the server's own limit mean that limit.
    #[schema(minimum = 0, maximum = 600_000)]
    timeout_ms: Option<u64>,
    /// Keep carriage returns, control sequences and newlines at the end.
    raw_output: Option<bool>,
}

impl ExecBody {
    /// The script and how long it may run.
    pub(super) fn check(self, app: &App) -> ApiResult<(String, Duration, bool)> {
        if !(1..=MAX_SESSION_COMMAND_BYTES).contains(&self.cmd.len()) {
            let message = format!("cmd must have 1 to {MAX_SESSION_COMMAND_BYTES} bytes");
            return Err(error::invalid(message));
        }
        let asked = self.timeout_ms.unwrap_or(0);
        if !EXEC_TIMEOUT_MS.contains(&asked) {
            let most = EXEC_TIMEOUT_MS.end();
            return Err(error::invalid(format!("timeout_ms must be from 0 to {most}")));
        }
        let most = app.settings().sessions.max_exec_timeout;
        let timeout = if asked == 0 { most } else { Duration::from_millis(asked).min(most) };
        Ok((self.cmd, timeout, self.raw_output.unwrap_or(false)))
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecResult)]
pub(super) struct ExecView {
    exit_code: i32,
    /// Where the shell is now; empty when nobody can say.
    cwd: String,
    /// What was written to both streams, in that order.
    output: String,
    /// There was more than 5 MiB of it.
    truncated: bool,
    duration_ms: u64,
}

/// Run a command in the session's shell, which keeps what it changes. Commands of one session take
/// turns. One that takes too long is killed with all that it started, and answered 504.
#[utoipa::path(post, path = "/v1/sessions/{id}/exec", tag = "sessions",
    params(("id" = String, Path)), request_body = ExecBody,
    responses((status = 200, body = ExecView), (status = "default", body = SessionError)))]
pub(super) async fn exec(
    State(app): State<App>,
    caller: Caller,
    id: SessionId,
    Strict(body): Strict<ExecBody>,
) -> ApiResult<Reply<ExecView>> {
    let (text, timeout, raw) = body.check(&app)?;
    let patience = Some(EXEC_PATIENCE);
    let mut script = Script::start(app, id, caller, text, timeout, patience).await?;
    let (output, truncated, ending) = collect(&mut script).await?;
    let outcome = script.outcome(ending).await?;
    let mut output = clean::text(&output, truncated);
    if !raw {
        output = Cleaner::default().push(&output);
        output.truncate(output.trim_end_matches('\n').len());
    }
    let (exit_code, duration_ms) = (outcome.exit_code, outcome.duration_ms);
    Ok(Reply(ExecView { exit_code, cwd: outcome.cwd, output, truncated, duration_ms }))
}

async fn collect(script: &mut Script) -> ApiResult<(Vec<u8>, bool, Ending)> {
    let mut output = Vec::new();
    let mut truncated = false;
    loop {
        match script.next().await? {
            Piece::Output(data) => {
                let room = MAX_SESSION_OUTPUT_BYTES - output.len();
                truncated |= data.len() > room;
                output.extend_from_slice(&data[..data.len().min(room)]);
            }
            Piece::Dropped => truncated = true,
            Piece::Silence => {}
            Piece::Ended(ending) => return Ok((output, truncated, ending)),
        }
    }
}
