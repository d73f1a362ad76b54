//! How a sandbox gets its machine: a ready one from the pool, or a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sandbank_engine::MachineSpec;
use sandbank_fault_points::Point;
use sandbank_store::{RowState, SandboxRow};
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};

use crate::context::Context;
use crate::effects::reach;
use crate::lifecycle::Event;
use crate::limits::CLAIM_PATIENCE;
use crate::pool::Member;
use crate::sandbox::{Message, SharedSandbox};
use crate::turns::Turn;
use crate::{AcquireSource, OrchestratorError, workspaces};

/// Sandboxes since the daemon started, by where their machines came from.
#[derive(Default)]
pub(crate) struct Acquired {
    pool: AtomicU64,
    cold: AtomicU64,
}

impl Acquired {
    fn count(&self, source: AcquireSource) {
        self.of(source).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn total(&self, source: AcquireSource) -> u64 {
        self.of(source).load(Ordering::Relaxed)
    }

    fn of(&self, source: AcquireSource) -> &AtomicU64 {
        match source {
            AcquireSource::Pool => &self.pool,
            AcquireSource::Cold => &self.cold,
        }
    }
}

pub(crate) async fn acquire(
    context: Arc<Context>,
    sandbox: SharedSandbox,
    spec: MachineSpec,
    row: SandboxRow,
    member: Option<Member>,
) {
    let message = match from_anywhere(&context, &sandbox, &spec, row, member).await {
        Ok(source) => {
            context.acquired.count(source);
            let _ = sandbox.source.set(source);
            Message::Event(Event::Created)
        }
        Err(error) => Message::CreateFailed(error),
    };
    let _ = sandbox.mailbox.send(message);
}

async fn from_anywhere(
    context: &Context,
    sandbox: &SharedSandbox,
    spec: &MachineSpec,
    row: SandboxRow,
    member: Option<Member>,
) -> Result<AcquireSource, OrchestratorError> {
    let Some(member) = member else {
        context.store.sandboxes().insert(&row).await?;
        reach(Point::RowInserted)?;
        make(context, sandbox, spec, &row).await?;
        return Ok(AcquireSource::Cold);
    };
    reach(Point::EngineCreated)?;
    // Intent and result in one, beside the first word to the runner: without the row, the machine
    // is one that nobody owns.
    let row = SandboxRow { state: RowState::Running, ..row };
    let rows = context.store.sandboxes();
    let (told, stored) = tokio::join!(prepare(&member, spec), rows.insert(&row));
    stored?;
    reach(Point::RowInserted)?;
    if let Err(error) = told {
        // Nobody has heard of it yet: a new one takes its place and its id.
        tracing::warn!(sandbox = %spec.id, %error, "a ready machine was of no use");
        drop(member);
        sandbox.link.forget().await;
        sandbox.engine().destroy(&spec.id).await?;
        make(context, sandbox, spec, &row).await?;
        return Ok(AcquireSource::Cold);
    }
    announce(context, &row, AcquireSource::Pool);
    reach(Point::RowRunning)?;
    Ok(AcquireSource::Pool)
}

/// The caller's variables, which no machine in the pool has. The answer also says that the runner
/// is there.
async fn prepare(member: &Member, spec: &MachineSpec) -> Result<(), OrchestratorError> {
    let told = timeout(CLAIM_PATIENCE, member.reached.client.set_environment(&spec.env)).await;
    Ok(told.map_err(|_| OrchestratorError::CreateTimedOut(CLAIM_PATIENCE))??)
}

/// The machine and the result, after the intent: whoever is told that it runs finds it after a
/// crash.
async fn make(
    context: &Context,
    sandbox: &SharedSandbox,
    spec: &MachineSpec,
    row: &SandboxRow,
) -> Result<(), OrchestratorError> {
    announce(context, row, AcquireSource::Cold);
    workspaces::look_elsewhere(context, sandbox).await?;
    let _turn = turn(context, sandbox).await?;
    sandbox.send(Event::TurnCame);
    workspaces::look(sandbox).await?;
    let clearance = &sandbox.provider.clearance;
    let changes = clearance.changes(&spec.image);
    clearance.check(&spec.image)?;
    let machine = sandbox.engine().create(spec).await?;
    sandbox.provider.turns.moved();
    clearance.still_holds(&spec.image, changes)?;
    reach(Point::EngineCreated)?;
    context.store.sandboxes().set_state(&row.id, RowState::Running, None).await?;
    workspaces::announce(context, &machine, spec);
    reach(Point::RowRunning)
}

/// Patience ends only where no machine was made for so long: a long queue that moves is no reason to
/// turn away whom it let in.
async fn turn<'a>(
    context: &Context,
    sandbox: &'a SharedSandbox,
) -> Result<Turn<'a>, OrchestratorError> {
    let patience = context.settings.turn_patience;
    let mut turn = std::pin::pin!(sandbox.provider.turn());
    let mut until = Instant::now() + patience;
    loop {
        if let Ok(turn) = timeout_at(until, &mut turn).await {
            return turn;
        }
        let moved = sandbox.provider.turns.last_moved().map(|moment| moment + patience);
        match moved.filter(|moved| *moved > Instant::now()) {
            Some(moved) => until = moved,
            None => return Err(OrchestratorError::NoTurn(patience)),
        }
        sandbox.send(Event::TurnNearer);
    }
}

fn announce(context: &Context, row: &SandboxRow, source: AcquireSource) {
    let detail = json!({
        "key": row.key, "image": row.image, "engine": row.engine, "source": source,
    });
    context.events.emit("sandbox.created", Some(&row.id), detail);
}
