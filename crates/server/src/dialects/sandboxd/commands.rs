//! Commands: start, look at, kill.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{CommandId, CommandSpec, FaultCode, SignalRequest, Started};
use serde::Serialize;
use utoipa::ToSchema;

use super::command_start::{self, StartBody, StartQuery, StartReply};
use super::command_view::CommandView;
use super::reconnect::{command_error, refused_as};
use super::{command_tail, command_watch, wait};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{CommandPath, Loose, Query, SandboxPath, Segments};
use crate::limits::START_PATIENCE;
use crate::reply::{Done, Reply};
use crate::request::Carried;

const SIGTERM: i32 = 15;

/// Run a program. Its output is at `logs`, its ending at `wait`; with `wait=true` the ending and the
/// end of the output are in the answer to this request, which then comes when the command has ended.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands", tag = "commands",
    params(("id" = String, Path), StartQuery), request_body = StartBody,
    responses((status = 200, body = StartReply), (status = "default", body = ErrorBody)))]
pub(super) async fn start(
    State(app): State<App>,
    caller: Caller,
    SandboxPath(id): SandboxPath,
    Query(query): Query<StartQuery>,
    Loose(body): Loose,
) -> ApiResult<Response> {
    // An unknown sandbox is told before an unusable command, as in sandboxd.
    let attached = app.orchestrator().attach(&id).await?;
    let spec = command_start::read(&body)?;
    let starting = start_and_log(app.clone(), id.clone(), caller, attached, spec, query.wait);
    // A task of its own: a client that leaves does not take what is known of its command along.
    let started = tokio::spawn(Carried::now().over(Box::pin(starting))).await;
    let (attached, started) = started.map_err(|_| ApiError::internal())?;
    let started = started.map_err(conflict)?;
    let reply = StartReply::new(&started, &body);
    match started.status.ending().cloned() {
        Some(ending) if query.wait => {
            let printed = command_tail::of(&attached, &started.status).await;
            Ok(Reply(reply.ended(ending, started.status, printed)).into_response())
        }
        None if query.wait => {
            let path = CommandPath { sandbox: id, command: started.status.id };
            wait::patiently(app.clone(), async move {
                let (ending, status) = wait::ending(&app, &path).await?;
                let printed = command_tail::of(&attached, &status).await;
                Ok(reply.ended(ending, status, printed))
            })
            .await
        }
        _ => Ok(Reply(reply).into_response()),
    }
}

async fn start_and_log(
    app: App,
    id: SandboxId,
    caller: Caller,
    attached: Attached,
    spec: CommandSpec,
    wait: bool,
) -> (Attached, Result<Started, OrchestratorError>) {
    let started = match wait {
        true => attached.start_and_wait(&spec, START_PATIENCE).await,
        false => attached.start(&spec).await,
    };
    if let Ok(started) = &started
        && !started.attached
    {
        command_watch::log(&app, &id, &caller, &spec, &started.status);
    }
    (attached, started)
}

fn conflict(error: OrchestratorError) -> ApiError {
    let error = ApiError::from(error);
    match error.code {
        "conflict" => error.with_hint("use another commandId, or repeat the same request"),
        _ => error,
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CommandList {
    commands: Vec<CommandView>,
}

/// Every command the sandbox still knows, oldest first.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands", tag = "commands",
    params(("id" = String, Path)),
    responses((status = 200, body = CommandList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
) -> ApiResult<Reply<CommandList>> {
    let attached = app.orchestrator().attach(&id).await?;
    let statuses = attached.run(|client| async move { client.commands().await }).await?;
    Ok(Reply(CommandList { commands: statuses.into_iter().map(Into::into).collect() }))
}

/// How a command stands.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/commands/{commandId}", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)),
    responses((status = 200, body = CommandView), (status = "default", body = ErrorBody)))]
pub(super) async fn inspect(
    State(app): State<App>,
    path: CommandPath,
) -> ApiResult<Reply<CommandView>> {
    let attached = app.orchestrator().attach(&path.sandbox).await?;
    let command = &path.command;
    let status = attached.run(|client| async move { client.command(command).await }).await;
    Ok(Reply(status.map_err(command_error)?.into()))
}

/// Send TERM to a command. Also true for one that is not there.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/commands/{commandId}:kill", tag = "commands",
    params(("id" = String, Path), ("commandId" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn kill(
    State(app): State<App>,
    caller: Caller,
    sandbox: SandboxPath,
    segments: Segments,
) -> ApiResult<Reply<Done>> {
    let attached = app.orchestrator().attach(&sandbox.0).await?;
    let Ok(command) = segments.get("commandId")?.parse::<CommandId>() else {
        return Ok(Done::reply());
    };
    let request = SignalRequest { signal: SIGTERM, by: caller.name.to_string(), tree: false };
    let (name, request) = (&command, &request);
    match attached.run(|client| async move { client.signal(name, request).await }).await {
        Ok(_) => {
            tracing::info!(sandbox = %sandbox.0, %command, by = %caller.name, "command killed")
        }
        Err(OrchestratorError::Channel(error))
            if [FaultCode::NotFound, FaultCode::Closed, FaultCode::Conflict]
                .into_iter()
                .any(|code| refused_as(&error, code)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Done::reply())
}
