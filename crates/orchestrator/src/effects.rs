//! What decisions lead to: calls of the engine, the runner and the store. Each runs in a task of
//! its own and reports to the sandbox's mailbox; none decides anything.

use std::pin::pin;
use std::sync::Arc;

use sandbank_engine::{Engine, EngineError};
use sandbank_fault_points::Point;
use sandbank_protocol::{CommandStatus, Stats};
use sandbank_store::{LeaseRow, RowState, SandboxRow};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::clock::{boot_of, lease_row};
use crate::collect::{self, Collected};
use crate::context::Context;
use crate::lifecycle::{Event, Observed, Standing, State};
use crate::limits::{ENGINE_DOUBT, ENGINE_VERDICT, OBSERVE_DEADLINE, WATCH_RETRY};
use crate::sandbox::{Message, Sandbox, SharedSandbox};
use crate::{Cause, OrchestratorError, PostMortem, SandboxState, workspaces};

pub(crate) fn row(context: &Context, sandbox: &Sandbox, state: &State) -> SandboxRow {
    let facts = &sandbox.facts;
    SandboxRow {
        id: facts.id.clone(),
        key: facts.key.as_str().to_owned(),
        state: RowState::Creating,
        cause: None,
        engine: facts.engine.clone(),
        image: facts.image.clone(),
        runtime: facts.runtime.clone(),
        network: facts.network,
        limits: facts.limits.clone(),
        ports: facts.ports.clone(),
        workspace: facts.workspace.clone(),
        created_at_ms: facts.created_at_ms,
        lease: lease_row(&*context.clock, &state.lease),
        closed_at_ms: None,
    }
}

pub(crate) async fn observe(
    context: Arc<Context>,
    sandbox: SharedSandbox,
    serial: u64,
    history: bool,
) {
    let verdict = Instant::now() + ENGINE_VERDICT;
    let mut asking = pin!(ask(&context, &sandbox, history));
    let answer = timeout(ENGINE_DOUBT, &mut asking).await.ok();
    let failed = !matches!(answer, Some(Ok(_)));
    if failed && is_away(sandbox.engine(), verdict).await {
        tracing::debug!(sandbox = %sandbox.id(), "the runner was not asked: its engine is away");
        return sandbox.send(Event::EngineAway { serial });
    }
    let answer = match answer {
        Some(answer) => answer,
        None => asking.await,
    };
    sandbox.send(match answer {
        Ok((stats, last_ended)) => Event::Observed(Observed {
            serial,
            commands: stats.commands_running,
            ended: stats.commands_ended,
            last_ended,
        }),
        Err(error) => {
            tracing::debug!(sandbox = %sandbox.id(), %error, "the runner was not asked");
            Event::ObserveFailed { serial }
        }
    });
}

/// Whether the engine, rather than the runner, is why there is no answer. The error does not say:
/// an engine calls a runner unavailable, too.
async fn is_away(engine: &dyn Engine, verdict: Instant) -> bool {
    engine.absent().is_some() || !matches!(timeout_at(verdict, engine.list()).await, Ok(Ok(_)))
}

async fn ask(
    context: &Context,
    sandbox: &Sandbox,
    history: bool,
) -> Result<(Stats, Option<i64>), OrchestratorError> {
    let mut channel = sandbox.link.channel().await?;
    let stats = match channel.client.stats().await {
        Err(error) if error.is_broken() => {
            channel = sandbox.link.channel_after(channel.serial).await?;
            channel.client.stats().await?
        }
        answer => answer?,
    };
    if !history {
        return Ok((stats, None));
    }
    let commands = channel.client.commands().await?;
    let last_ended = commands.iter().filter_map(|command| command.ended_at_ms).max();
    Ok((stats, last_ended.map(|wall_ms| boot_of(&*context.clock, wall_ms))))
}

pub(crate) async fn save_lease(context: Arc<Context>, sandbox: SharedSandbox, lease: LeaseRow) {
    if let Err(error) = context.store.sandboxes().set_lease(sandbox.id(), &lease).await {
        tracing::warn!(sandbox = %sandbox.id(), %error, "a lease was not stored");
        sandbox.send(Event::SaveFailed);
    }
}

pub(crate) async fn pause(context: Arc<Context>, sandbox: SharedSandbox) {
    // Nobody can ask a paused runner, so the last moment to ask is now.
    let asked = timeout(OBSERVE_DEADLINE, ask(&context, &sandbox, false)).await;
    let commands = asked.ok().and_then(Result::ok).map(|(stats, _)| stats.commands_running);
    let result = sandbox.engine().pause(sandbox.id()).await;
    change(&context, &sandbox, Standing::Paused, commands, result).await;
}

pub(crate) async fn resume(context: Arc<Context>, sandbox: SharedSandbox) {
    let result = sandbox.engine().resume(sandbox.id()).await;
    change(&context, &sandbox, Standing::Running, None, result).await;
}

async fn change(
    context: &Context,
    sandbox: &Sandbox,
    to: Standing,
    commands: Option<u64>,
    result: Result<(), EngineError>,
) {
    let id = sandbox.id();
    if let Err(error) = result {
        let _ = sandbox.mailbox.send(Message::ChangeFailed(error.into()));
        return;
    }
    let (state, kind) = match to {
        Standing::Paused => (RowState::Paused, "sandbox.paused"),
        Standing::Running => (RowState::Running, "sandbox.resumed"),
    };
    context.events.emit(kind, Some(id), json!({}));
    sandbox.send(Event::Changed { to, commands });
    // Nobody waits for the row: at a restart the engine's word counts.
    if let Err(error) = context.store.sandboxes().set_state(id, state, None).await {
        tracing::warn!(sandbox = %id, %error, "a pause or resume was not stored");
    }
}

/// Writes down that it is ending, and gathers what can be had; `answers` says whether there is a
/// runner to be asked.
pub(crate) async fn collect(
    context: Arc<Context>,
    sandbox: SharedSandbox,
    cause: Cause,
    known: Vec<CommandStatus>,
    answers: bool,
) {
    let id = sandbox.id();
    let cause = to_value(&cause);
    let storing = async {
        let rows = context.store.sandboxes();
        if let Err(error) = rows.set_state(id, RowState::Stopping, Some(&cause)).await {
            tracing::warn!(sandbox = %id, %error, "an ending was not stored in advance");
        }
        reach(Point::RowStopping)
    };
    let asking = async {
        let channel = if answers { sandbox.link.channel().await.ok()? } else { return None };
        let commands = collect::commands(&channel.client).await.ok()?;
        let output = collect::output(&channel.client, &commands).await;
        Some((commands, output))
    };
    let peaks = collect::peaks(sandbox.engine(), id);
    let (stored, peaks, told) = tokio::join!(storing, peaks, asking);
    if stored.is_err() || reach(Point::Collected).is_err() {
        return;
    }
    let (last_commands, last_output) = told.unwrap_or_else(|| (known, String::new()));
    let last_commands = collect::lost(last_commands);
    let collected = Collected { peaks, last_commands, last_output };
    let _ = sandbox.mailbox.send(Message::Collected(Box::new(collected)));
}

/// `never_was` is said of one that could not be made.
pub(crate) async fn destroy(
    context: Arc<Context>,
    sandbox: SharedSandbox,
    attempt: u32,
    never_was: bool,
) {
    let id = sandbox.id();
    let destroyed: Result<(), OrchestratorError> = async {
        sandbox.engine().destroy(id).await?;
        reach(Point::EngineDestroyed)
    }
    .await;
    match destroyed {
        Ok(()) => {
            if never_was {
                workspaces::tidy(&sandbox).await;
            }
            sandbox.send(Event::Destroyed { attempt });
        }
        Err(error) => {
            tracing::error!(sandbox = %id, %error, attempt, "a machine was not destroyed");
            let detail = json!({ "attempt": attempt, "error": error.to_string() });
            context.events.emit("sandbox.destroy_failed", Some(id), detail);
            sandbox.send(Event::DestroyFailed { attempt });
        }
    }
}

pub(crate) async fn record(
    context: Arc<Context>,
    sandbox: SharedSandbox,
    cause: Cause,
    collected: Collected,
    attempt: u32,
) {
    let facts = &sandbox.facts;
    let ended_at_ms = context.clock.wall_ms();
    let state = match cause.end_state() {
        SandboxState::Failed => RowState::Failed,
        _ => RowState::Gone,
    };
    let post_mortem = PostMortem {
        id: facts.id.clone(),
        key: facts.key.clone(),
        cause: cause.clone(),
        created_at_ms: facts.created_at_ms,
        ended_at_ms,
        peaks: collected.peaks,
        last_commands: collected.last_commands,
        last_output: collected.last_output,
    };
    let (cause, body) = (to_value(&cause), to_value(&post_mortem));
    let rows = context.store.sandboxes();
    let closed: Result<(), OrchestratorError> = async {
        rows.close(&facts.id, state, &cause, ended_at_ms, &body).await?;
        reach(Point::RowClosed)
    }
    .await;
    match closed {
        Ok(()) => sandbox.send(Event::Recorded { attempt }),
        Err(error) => {
            tracing::error!(sandbox = %facts.id, %error, attempt, "a row was not closed");
            sandbox.send(Event::RecordFailed { attempt });
        }
    }
}

/// Resolves with a message once the machine is dead or unknown to its engine.
pub(crate) async fn watch_death(sandbox: SharedSandbox) {
    loop {
        match sandbox.engine().wait_dead(sandbox.id()).await {
            Ok(death) => return sandbox.send(Event::Died { death }),
            Err(error @ (EngineError::NotFound(_) | EngineError::Dead(_))) => {
                return sandbox.send(Event::Vanished { reason: error.to_string() });
            }
            Err(error) => {
                tracing::warn!(sandbox = %sandbox.id(), %error, "a machine is not being watched");
                tokio::time::sleep(WATCH_RETRY).await;
            }
        }
    }
}

/// A fault point, as a failure of ours.
pub(crate) fn reach(point: Point) -> Result<(), OrchestratorError> {
    sandbank_fault_points::reach(point)
        .map_err(|error| OrchestratorError::Internal(error.to_string()))
}

fn to_value(data: &impl serde::Serialize) -> Value {
    serde_json::to_value(data).expect("causes and post-mortems are plain data")
}
