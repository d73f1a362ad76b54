//! Waiting for a command's ending, however long that takes and however often the channel breaks.

use std::io;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use sandbank_channel::ChannelError;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::{CommandId, CommandStatus, Ending};
use serde::Serialize;
use utoipa::ToSchema;

use super::reconnect::{Retry, command_error, is_broken};
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::CommandPath;
use crate::limits::HEARTBEAT;
use crate::reply::{JSON, Reply};

/// What sandboxd answers where nobody can tell.
const NO_EXIT_CODE: i32 = 1;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitReply {
    exit_code: i32,
    /// `{"kind": …}`
    #[schema(value_type = Object)]
    ending: Ending,
}

impl From<Ending> for WaitReply {
    fn from(ending: Ending) -> Self {
        Self { exit_code: exit_code(&ending), ending }
    }
}

pub(super) fn exit_code(ending: &Ending) -> i32 {
    ending.exit_code().unwrap_or(NO_EXIT_CODE)
}

type Waiting<T> = Pin<Box<dyn Future<Output = ApiResult<T>> + Send>>;

/// Blocks until the command has ended. A long wait sends white space before its JSON, because
/// clients give up on silent servers. A transfer that breaks off says nothing about the command.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{commandId}/wait", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)),
    responses((status = 200, body = WaitReply), (status = "default", body = ErrorBody)))]
pub(super) async fn wait(State(app): State<App>, path: CommandPath) -> ApiResult<Response> {
    patiently(app.clone(), async move { Ok(WaitReply::from(ending(&app, &path).await?.0)) }).await
}

/// The answer, after white space if it is long in coming.
pub(super) async fn patiently<T: Serialize + Send + 'static>(
    app: App,
    reply: impl Future<Output = ApiResult<T>> + Send + 'static,
) -> ApiResult<Response> {
    let silence = app.wait_silence();
    let mut waiting: Waiting<T> = Box::pin(reply);
    match tokio::time::timeout(silence, &mut waiting).await {
        Ok(reply) => Ok(Reply(reply?).into_response()),
        Err(_) => Ok(with_white_space(waiting)),
    }
}

pub(super) async fn ending(app: &App, path: &CommandPath) -> ApiResult<(Ending, CommandStatus)> {
    let status = tokio::select! {
        status = status(app, &path.sandbox, &path.command) => status?,
        () = app.shutdown().draining() => {
            return Err(OrchestratorError::ShuttingDown.into());
        }
    };
    match status.ending().cloned() {
        Some(ending) => Ok((ending, status)),
        None => Err(ChannelError::Violation("a wait without an ending".to_owned()).into()),
    }
}

/// The status once it has ended. A sandbox that ends takes its commands along.
pub(super) async fn status(
    app: &App,
    sandbox: &SandboxId,
    command: &CommandId,
) -> ApiResult<CommandStatus> {
    let mut retry = Retry::default();
    let mut known = None;
    loop {
        let error = match attempt(app, sandbox, command, &mut known).await {
            Ok(status) => return Ok(status),
            Err(error) => error,
        };
        match (known.take(), error) {
            (Some(status), OrchestratorError::Gone { cause, .. }) => {
                return Ok(ended(status, lost(&cause.to_string())));
            }
            (Some(status), OrchestratorError::NotFound(_)) => {
                return Ok(ended(status, lost("the sandbox is gone")));
            }
            (status, error) if is_broken(&error) => {
                known = status;
                if !retry.again().await {
                    return Err(error.into());
                }
            }
            (_, error) => return Err(command_error(error)),
        }
    }
}

async fn attempt(
    app: &App,
    sandbox: &SandboxId,
    command: &CommandId,
    known: &mut Option<CommandStatus>,
) -> Result<CommandStatus, OrchestratorError> {
    let attached = app.orchestrator().attach(sandbox).await?;
    if known.is_none() {
        let status = attached.command(command).await?;
        if status.ending().is_some() {
            return Ok(status);
        }
        *known = Some(status);
    }
    tokio::select! {
        biased;
        status = attached.wait(command) => Ok(status?),
        cause = attached.ended() => Err(OrchestratorError::Gone { id: sandbox.clone(), cause }),
    }
}

fn lost(reason: &str) -> Ending {
    Ending::Lost { reason: reason.to_owned() }
}

fn ended(status: CommandStatus, ending: Ending) -> CommandStatus {
    CommandStatus { state: sandbank_protocol::CommandState::Ended { ending }, ..status }
}

/// From here on the status line is gone. A failure to learn the ending breaks the transfer off:
/// the command may well be running, so any ending would be made up.
fn with_white_space<T: Serialize + Send + 'static>(waiting: Waiting<T>) -> Response {
    let chunks = stream::unfold(Some(waiting), |waiting| async move {
        let mut waiting = waiting?;
        match tokio::time::timeout(HEARTBEAT, &mut waiting).await {
            Err(_) => Some((Ok(Bytes::from_static(b" ")), Some(waiting))),
            Ok(Ok(reply)) => {
                let json = serde_json::to_vec(&reply).expect("plain data");
                Some((Ok(json.into()), None))
            }
            Ok(Err(error)) => Some((Err(io::Error::other(error.message)), None)),
        }
    });
    ([(header::CONTENT_TYPE, JSON)], Body::from_stream(chunks)).into_response()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_sends_white_space_and_then_valid_json() {
        let waiting: Waiting<WaitReply> = Box::pin(async {
            tokio::time::sleep(HEARTBEAT * 3 + HEARTBEAT / 2).await;
            Ok(Ending::Exited { code: 5 }.into())
        });
        let body = with_white_space(waiting).into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"   {"), "{body:?}");
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(json["exitCode"], 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_that_fails_breaks_off_instead_of_making_up_an_ending() {
        let waiting: Waiting<WaitReply> = Box::pin(async {
            tokio::time::sleep(HEARTBEAT + HEARTBEAT / 2).await;
            Err(OrchestratorError::ShuttingDown.into())
        });
        let mut body = with_white_space(waiting).into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, " ");
        assert!(body.frame().await.unwrap().is_err());
    }

    #[test]
    fn nobody_knowing_is_exit_code_one() {
        let reply = WaitReply::from(lost("gone"));
        assert_eq!(serde_json::to_value(reply).unwrap()["exitCode"], 1);
    }
}
