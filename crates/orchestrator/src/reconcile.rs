//! At start: rows and engine objects are brought together, both ways.
//!
//! | row | machine | then |
//! |---|---|---|
//! | none | any | destroyed |
//! | creating | any or none | destroyed, closed: its caller never heard of it |
//! | running, paused | running, paused | adopted, with its stored deadlines and ports |
//! | running, paused | dead or none | destroyed, closed with a post-mortem |
//! | stopping | any or none | its ending goes on |

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sandbank_engine::{DeathCause, MachineState, SandboxId};
use sandbank_store::{RowState, SandboxRow};
use tokio::time::timeout;

use crate::context::Context;
use crate::driver::{self, Beginning};
use crate::lifecycle::{Ending, Phase, State, Step};
use crate::sandbox::Facts;
use crate::sweep::Found;
use crate::{Cause, OrchestratorError, clock, ports, sweep};

/// How long the engine may take to say of what a machine died before anybody watched.
const DEATH_ANSWER: Duration = Duration::from_millis(200);

pub(crate) async fn reconcile(context: &Arc<Context>) -> Result<(), OrchestratorError> {
    let machines = context.engine.list().await?;
    let standing: HashMap<_, _> = machines.iter().map(|m| (m.id.clone(), m.state)).collect();
    context.host_ports.put_last(&context.store.ports().host_ports().await?);
    for row in context.store.sandboxes().open().await? {
        let machine = standing.get(&row.id).copied();
        take_over(context, &row, machine).await?;
    }
    sweep::destroy_ownerless(context, &machines, Found::AtStart).await;
    Ok(())
}

async fn take_over(
    context: &Arc<Context>,
    row: &SandboxRow,
    machine: Option<MachineState>,
) -> Result<(), OrchestratorError> {
    let phase = match (row.state, machine) {
        (RowState::Running | RowState::Paused, Some(MachineState::Running)) => Phase::Running,
        (RowState::Running | RowState::Paused, Some(MachineState::Paused)) => Phase::Paused,
        (RowState::Running | RowState::Paused, Some(MachineState::Dead)) => {
            let death = death_of(context, &row.id).await;
            finish(context, Cause::RunnerDied { death }, Step::Collect)
        }
        (RowState::Running | RowState::Paused, None) => {
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
    let (sandbox, driver) = driver::sandbox(context, facts, State { phase, lease }, None);
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
pub(crate) async fn death_of(context: &Context, id: &SandboxId) -> DeathCause {
    match timeout(DEATH_ANSWER, context.engine.wait_dead(id)).await {
        Ok(Ok(death)) => death,
        _ => DeathCause::Unknown,
    }
}
