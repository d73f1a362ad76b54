//! The net under everything: at intervals, engine objects and sandboxes are compared both ways,
//! every sandbox looks at the clock, and what is old is forgotten. In between, and more often,
//! only machines that are gone are looked for.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use sandbank_engine::{Machine, MachineState, SandboxId};
use serde_json::json;
use tokio::time::Instant;

use crate::context::Context;
use crate::lifecycle::{Event, Phase, Standing};
use crate::limits::{CONCURRENT_DESTROYS, KEPT_EVENTS, LOSS_INTERVAL};
use crate::reconcile::death_of;
use crate::sandbox::SharedSandbox;
use crate::{OrchestratorError, pool};

pub(crate) async fn run(context: Arc<Context>) {
    let mut failing = false;
    let mut next = Instant::now() + context.settings.sweep_interval;
    let sweeping = async {
        loop {
            tokio::time::sleep(LOSS_INTERVAL.min(context.settings.sweep_interval)).await;
            let swept = if Instant::now() < next {
                compare(&context, false).await.map(drop)
            } else {
                next = Instant::now() + context.settings.sweep_interval;
                sweep(&context).await
            };
            if let (Err(error), false) = (&swept, failing) {
                tracing::warn!(%error, "sandboxes and engine objects were not compared");
            }
            failing = swept.is_err();
        }
    };
    context.leaving.run_until_cancelled(sweeping).await;
}

async fn sweep(context: &Context) -> Result<(), OrchestratorError> {
    for sandbox in context.registry.all() {
        sandbox.send(Event::Tick);
    }
    // A canary has no owner either, and is not listed if it comes later.
    let no_canaries = context.clearance.canaries.try_lock();
    let machines = compare(context, true).await?;
    if no_canaries.is_ok() {
        destroy_ownerless(context, &machines, Found::Later).await;
    }
    drop(no_canaries);
    context.store.post_mortems().prune(context.settings.keep_post_mortems).await?;
    context.store.events().prune(KEPT_EVENTS).await?;
    Ok(())
}

/// Tells sandboxes that their machines are gone and, with `standing`, how those that are there
/// stand. Gives the machines.
async fn compare(context: &Context, standing: bool) -> Result<Vec<Machine>, OrchestratorError> {
    // The order matters: what lived before the list was made must be in it, and what is in it
    // but not among the sandboxes afterwards has no owner.
    let living: Vec<_> = context.registry.all().into_iter().filter(is_standing).collect();
    let spare = context.pool.ids();
    let machines = context.engine.list().await?;
    let by_id: HashMap<_, _> = machines.iter().map(|machine| (&machine.id, machine)).collect();
    for sandbox in living {
        match by_id.get(sandbox.id()).map(|machine| machine.state) {
            Some(MachineState::Running | MachineState::Paused) if !standing => {}
            Some(MachineState::Running) => sandbox.send(Event::Found(Standing::Running)),
            Some(MachineState::Paused) => sandbox.send(Event::Found(Standing::Paused)),
            // Its watcher should have said so.
            Some(MachineState::Dead) => {
                let death = death_of(context, sandbox.id()).await;
                sandbox.send(Event::Died { death });
            }
            None => {
                let reason = "its machine was removed behind the daemon's back".to_owned();
                sandbox.send(Event::Vanished { reason });
            }
        }
    }
    for id in spare {
        if by_id.get(&id).map(|machine| machine.state) != Some(MachineState::Running) {
            pool::lost(context, &id).await;
        }
    }
    Ok(machines)
}

fn is_standing(sandbox: &SharedSandbox) -> bool {
    matches!(sandbox.view.borrow().state.phase, Phase::Running | Phase::Paused)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Before this daemon made any: with a pool, such machines are what a killed one left of it.
    AtStart,
    Later,
}

/// Machines that no sandbox owns are destroyed, a few at a time; failures wait for the next sweep.
pub(crate) async fn destroy_ownerless(context: &Context, machines: &[Machine], found: Found) {
    let of_pool = found == Found::AtStart && !context.settings.pool.is_empty();
    let ownerless: Vec<SandboxId> = machines
        .iter()
        // In this order: what the pool has no more, the registry has already.
        .filter(|machine| !context.pool.owns(&machine.id))
        .filter(|machine| context.registry.find(&machine.id).is_none())
        .map(|machine| machine.id.clone())
        .collect();
    futures_util::stream::iter(ownerless)
        .for_each_concurrent(CONCURRENT_DESTROYS, async |id| {
            let destroyed = context.engine.destroy(&id).await;
            let error = destroyed.err().map(|error| error.to_string());
            match &error {
                None if of_pool => {
                    tracing::info!(machine = %id, "taking back a pooled machine of the daemon before");
                }
                _ => tracing::warn!(machine = %id, ?error, "a machine without an owner was found"),
            }
            context.events.emit("engine.ownerless", Some(&id), json!({ "error": error }));
        })
        .await;
}
