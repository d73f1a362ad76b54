//! At start: rows and engine objects are brought together, both ways.
//!
//! | row | machine | then |
//! |---|---|---|
//! | none | any | destroyed |
//! | creating | any or none | destroyed, closed: its caller never heard of it |
//! | running, paused | running, paused | adopted, with its stored deadlines and ports |
//! | running, paused | dead or none | destroyed, closed with a post-mortem |
//! | stopping | any or none | its ending goes on |
//!
//! Each row belongs to one engine, and is compared with that one's machines. Of one that does not
//! answer nothing is known: its rows are taken up as they stand, and the sweep finds out. Rows of
//! an engine that is not configured keep the daemon from starting: nobody could look after them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sandbank_engine::{DeathCause, Engine, MachineState, SandboxId};
use sandbank_store::{RowState, SandboxRow};
use tokio::time::timeout;

use crate::context::Context;
use crate::driver::{self, Beginning};
use crate::lifecycle::{Ending, Phase, State, Step};
use crate::provider::Provider;
use crate::sandbox::Facts;
use crate::sweep::Found;
use crate::{Cause, OrchestratorError, clock, ports, sweep};

/// How long the engine may take to say of what a machine died before anybody watched.
const DEATH_ANSWER: Duration = Duration::from_millis(200);

pub(crate) async fn reconcile(context: &Arc<Context>) -> Result<(), OrchestratorError> {
    let mut rows = context.store.sandboxes().open().await?;
    check_engines(context, &rows)?;
    context.host_ports.put_last(&context.store.ports().host_ports().await?);
    for provider in context.providers.all() {
        let machines = match provider.engine.list().await {
            Err(error) if !context.providers.is_default(provider) => {
                let engine = provider.name();
                tracing::warn!(%error, engine, "its sandboxes are taken up unseen");
                None
            }
            listed => Some(listed?),
        };
        let standing: Option<Standing> = machines.as_ref().map(|machines| {
            machines.iter().map(|machine| (machine.id.clone(), machine.state)).collect()
        });
        for row in rows.extract_if(.., |row| row.engine == provider.name()) {
            let seen = Seen::of(standing.as_ref(), &row.id);
            take_over(context, provider, &row, seen).await?;
        }
        if let Some(machines) = machines {
            sweep::destroy_ownerless(context, provider, &machines, Found::AtStart).await;
        }
    }
    Ok(())
}

fn check_engines(context: &Context, rows: &[SandboxRow]) -> Result<(), OrchestratorError> {
    let is_missing = |row: &&SandboxRow| context.providers.find(&row.engine).is_none();
    let Some(first) = rows.iter().find(is_missing) else { return Ok(()) };
    let sandboxes = rows.iter().filter(|row| row.engine == first.engine).count();
    Err(OrchestratorError::EngineNotConfigured { engine: first.engine.clone(), sandboxes })
}

type Standing = HashMap<SandboxId, MachineState>;

/// What is known of a row's machine.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Machine(MachineState),
    /// There is none.
    Gone,
    /// The engine does not answer.
    Nothing,
}

impl Seen {
    fn of(standing: Option<&Standing>, id: &SandboxId) -> Self {
        let Some(standing) = standing else { return Self::Nothing };
        standing.get(id).map_or(Self::Gone, |state| Self::Machine(*state))
    }
}

async fn take_over(
    context: &Arc<Context>,
    provider: &Arc<Provider>,
    row: &SandboxRow,
    seen: Seen,
) -> Result<(), OrchestratorError> {
    let phase = match (row.state, seen) {
        (RowState::Running | RowState::Paused, Seen::Machine(MachineState::Running))
        | (RowState::Running, Seen::Nothing) => Phase::Running,
        (RowState::Running | RowState::Paused, Seen::Machine(MachineState::Paused))
        | (RowState::Paused, Seen::Nothing) => Phase::Paused,
        (RowState::Running | RowState::Paused, Seen::Machine(MachineState::Dead)) => {
            let death = death_of(&*provider.engine, &row.id).await;
            finish(context, Cause::RunnerDied { death }, Step::Collect)
        }
        (RowState::Running | RowState::Paused, Seen::Gone) => {
            let reason = "its machine was not there when the daemon started".to_owned();
            finish(context, Cause::Lost { reason }, Step::Collect)
        }
        (RowState::Creating, _) => {
            let reason = "the daemon ended while it was being made".to_owned();
            finish(context, Cause::CreateFailed { reason }, Step::Destroy)
        }
        (RowState::Stopping | RowState::Gone | RowState::Failed, _) => {
            finish(context, stored_cause(row), Step::Destroy)
        }
    };
    let mut lease = clock::lease_from_row(&*context.clock, &row.lease, row.created_at_ms);
    // What runs in it now, nobody has seen.
    lease.look_soon(context.clock.boot_ms(), &context.rules);
    let ending = matches!(phase, Phase::Ending(_));
    let facts = Facts::from_row(row)?;
    let (sandbox, driver) = driver::sandbox(context, provider, facts, State { phase, lease }, None);
    context.registry.adopt(sandbox.clone(), ending);
    if ending {
        driver.spawn(Beginning::Finish);
        return Ok(());
    }
    driver.spawn(Beginning::Adopt);
    for port in context.store.ports().of(&row.id).await? {
        ports::republish(context, &sandbox, port).await;
    }
    Ok(())
}

fn finish(context: &Context, cause: Cause, step: Step) -> Phase {
    let allowed = match step {
        Step::Collect => context.rules.collect_deadline,
        _ => context.rules.stop_deadline,
    };
    let until = context.clock.boot_ms() + allowed;
    Phase::Ending(Ending { cause, step, attempt: 1, waiting: false, until })
}

fn stored_cause(row: &SandboxRow) -> Cause {
    let cause = row.cause.clone().and_then(|cause| serde_json::from_value(cause).ok());
    cause.unwrap_or_else(|| Cause::Lost { reason: "its row did not say why it ended".to_owned() })
}

/// As far as the engine can tell at once.
pub(crate) async fn death_of(engine: &dyn Engine, id: &SandboxId) -> DeathCause {
    match timeout(DEATH_ANSWER, engine.wait_dead(id)).await {
        Ok(Ok(death)) => death,
        _ => DeathCause::Unknown,
    }
}
