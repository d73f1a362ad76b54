//! Making members, one at a time and after everybody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandbank_channel::RunnerClient;
use sandbank_engine::{Engine, EngineError, MachineSpec, SandboxId};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{Member, Pool, Recipe, destroy, lost};
use crate::OrchestratorError;
use crate::context::Context;
use crate::limits::{REFILL_PATIENCE, REFILL_PAUSE, WATCH_RETRY};
use crate::link::Reached;
use crate::provider::Provider;

/// Until the daemon leaves. A member that is being made then is finished, and destroyed.
pub(crate) async fn run(context: Arc<Context>, provider: Arc<Provider>) {
    loop {
        let waiting = async {
            let place = next(&provider.pool).await;
            // Whoever has just claimed one is about to use it, and to make another takes a core.
            sleep(REFILL_PAUSE).await;
            // A member takes none of the callers' turns, so no create waits for one; while any is
            // under way it stays out of its way, within reason.
            let _ = timeout(REFILL_PATIENCE, provider.turns.idle()).await;
            place
        };
        let Some(place) = context.leaving.run_until_cancelled(waiting).await else { return };
        make(&context, &provider, place).await;
    }
}

/// The place of the shelf that lacks a member and may have one now.
async fn next(pool: &Pool) -> usize {
    loop {
        let now = Instant::now();
        let first = {
            let shelves = pool.lock();
            let due = shelves.all.iter().map(|shelf| shelf.due(now));
            due.enumerate().filter_map(|(place, at)| Some((at?, place))).min()
        };
        match first {
            Some((at, place)) if at <= now => return place,
            Some((at, _)) => tokio::select! {
                () = sleep_until(at) => {}
                () = pool.wanted.notified() => {}
            },
            None => pool.wanted.notified().await,
        }
    }
}

async fn make(context: &Arc<Context>, provider: &Arc<Provider>, place: usize) {
    let pool = &provider.pool;
    let _none_else_is_made = pool.making.lock().await;
    let id = SandboxId::random();
    let recipe = {
        let mut shelves = pool.lock();
        if shelves.closed {
            return;
        }
        let shelf = &mut shelves.all[place];
        if provider.check(&shelf.recipe.image).is_err() {
            // Whoever withholds it has said why.
            shelf.set_back(Instant::now());
            return;
        }
        shelf.begin();
        let recipe = shelf.recipe.clone();
        shelves.owned.insert(id.clone());
        recipe
    };
    let making =
        timeout(context.settings.create_deadline, machine(&*provider.engine, &id, &recipe));
    let made = match making.await {
        Ok(made) => made,
        Err(_) => Err(OrchestratorError::CreateTimedOut(context.settings.create_deadline)),
    };
    match made {
        Ok(reached) => {
            if let Some(reached) = shelve(context, provider, place, &id, reached) {
                destroy(context, provider, &id).await;
                drop(reached);
            }
        }
        Err(error) => {
            destroy(context, provider, &id).await;
            if pool.lock().all[place].failed(Instant::now()) {
                tracing::warn!(image = %recipe.image, %error, "the pool is not filled; it is tried again");
                let detail = json!({ "image": recipe.image, "error": error.to_string() });
                context.events.emit("pool.refill_failed", None, detail);
            }
        }
    }
}

async fn machine(
    engine: &dyn Engine,
    id: &SandboxId,
    recipe: &Recipe,
) -> Result<Reached, OrchestratorError> {
    let spec = MachineSpec {
        id: id.clone(),
        image: recipe.image.clone(),
        limits: recipe.limits.clone(),
        network: recipe.network,
        env: BTreeMap::new(),
        workspace: None,
    };
    engine.create(&spec).await?;
    let (client, hello) = RunnerClient::connect(engine.connect(id).await?).await?;
    Ok(Reached { client, epoch: hello.epoch })
}

/// Gives it back when the pool is closed.
fn shelve(
    context: &Arc<Context>,
    provider: &Arc<Provider>,
    place: usize,
    id: &SandboxId,
    reached: Reached,
) -> Option<Reached> {
    let mut shelves = provider.pool.lock();
    if shelves.closed {
        return Some(reached);
    }
    // Under the lock: a watcher that has news finds the member where it looks for it.
    let watching = watch(context.clone(), provider.clone(), id.clone(), reached.client.clone());
    let _watcher = AbortOnDropHandle::new(tokio::spawn(watching));
    shelves.all[place].done(Member { id: id.clone(), reached, _watcher }, Instant::now());
    None
}

async fn watch(
    context: Arc<Context>,
    provider: Arc<Provider>,
    id: SandboxId,
    client: RunnerClient,
) {
    tokio::select! {
        () = dead(&*provider.engine, &id) => {}
        () = client.closed() => {}
    }
    lost(&context, &provider, &id).await;
}

async fn dead(engine: &dyn Engine, id: &SandboxId) {
    loop {
        match engine.wait_dead(id).await {
            Ok(_) | Err(EngineError::NotFound(_) | EngineError::Dead(_)) => return,
            Err(_) => sleep(WATCH_RETRY).await,
        }
    }
}
