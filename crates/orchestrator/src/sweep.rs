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
use crate::limits::{CONCURRENT_DESTROYS, KEPT_EVENTS};
use crate::provider::Provider;
use crate::reconcile::death_of;
use crate::sandbox::SharedSandbox;
use crate::{OrchestratorError, pool};

/// Of the sandboxes and machines of one engine: one that does not answer keeps no other waiting.
pub(crate) async fn run(context: Arc<Context>, provider: Arc<Provider>) {
    let mut failing = false;
    let mut next = Instant::now() + context.settings.sweep_interval;
    let pause = context.settings.loss_interval.min(context.settings.sweep_interval);
    let sweeping = async {
        loop {
            tokio::time::sleep(pause).await;
            let swept = if Instant::now() < next {
                compare(&context, &provider, false).await.map(drop)
            } else {
                next = Instant::now() + context.settings.sweep_interval;
                sweep(&context, &provider).await
            };
            if let (Err(error), false) = (&swept, failing) {
                let engine = provider.name();
                tracing::warn!(%error, engine, "sandboxes and engine objects were not compared");
            }
            failing = swept.is_err();
        }
    };
    context.leaving.run_until_cancelled(sweeping).await;
}

async fn sweep(context: &Context, provider: &Provider) -> Result<(), OrchestratorError> {
    for sandbox in of(context, provider) {
        sandbox.send(Event::Tick);
    }
    // A canary has no owner either, and is not listed if it comes later.
    let no_canaries = provider.clearance.canaries.try_lock();
    let machines = compare(context, provider, true).await?;
    if no_canaries.is_ok() {
        destroy_ownerless(context, provider, &machines, Found::Later).await;
    }
    drop(no_canaries);
    if context.providers.is_default(provider) {
        prune(context).await?;
    }
    Ok(())
}

async fn prune(context: &Context) -> Result<(), OrchestratorError> {
    context.store.post_mortems().prune(context.settings.keep_post_mortems).await?;
    context.store.events().prune(KEPT_EVENTS).await?;
    Ok(())
}

/// Tells sandboxes that their machines are gone and, with `standing`, how those that are there
/// stand. Gives the machines.
async fn compare(
    context: &Context,
    provider: &Provider,
    standing: bool,
) -> Result<Vec<Machine>, OrchestratorError> {
    // The order matters: what lived before the list was made must be in it, and what is in it
    // but not among the sandboxes afterwards has no owner.
    let living: Vec<_> = of(context, provider).filter(is_standing).collect();
    let spare = provider.pool.ids();
    let machines = provider.engine.list().await?;
    let by_id: HashMap<_, _> = machines.iter().map(|machine| (&machine.id, machine)).collect();
    for sandbox in living {
        match by_id.get(sandbox.id()).map(|machine| machine.state) {
            Some(MachineState::Running | MachineState::Paused) if !standing => {}
            Some(MachineState::Running) => sandbox.send(Event::Found(Standing::Running)),
            Some(MachineState::Paused) => sandbox.send(Event::Found(Standing::Paused)),
            // Its watcher should have said so.
            Some(MachineState::Dead) => {
                let death = death_of(sandbox.engine(), sandbox.id()).await;
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
            pool::lost(context, provider, &id).await;
        }
    }
    Ok(machines)
}

fn of(context: &Context, provider: &Provider) -> impl Iterator<Item = SharedSandbox> {
    let is_its = |sandbox: &SharedSandbox| std::ptr::eq(&*sandbox.provider, provider);
    context.registry.all().into_iter().filter(is_its)
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
pub(crate) async fn destroy_ownerless(
    context: &Context,
    provider: &Provider,
    machines: &[Machine],
    found: Found,
) {
    let of_pool = found == Found::AtStart && provider.pool.is_wanted();
    let ownerless: Vec<SandboxId> = machines
        .iter()
        // In this order: what the pool has no more, the registry has already.
        .filter(|machine| !provider.pool.owns(&machine.id))
        .filter(|machine| context.registry.find(&machine.id).is_none())
        .map(|machine| machine.id.clone())
        .collect();
    futures_util::stream::iter(ownerless)
        .for_each_concurrent(CONCURRENT_DESTROYS, async |id| {
            let destroyed = provider.engine.destroy(&id).await;
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
