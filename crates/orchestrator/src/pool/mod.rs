//! Ready machines of one engine, kept for creates to come.
//!
//! A member is a whole machine with an id of its own, but without a row, a key or a place among
//! the sandboxes: it becomes the sandbox with that id when a create takes it. What a daemon that
//! was killed leaves of its pool are machines without rows, which the next start destroys.

mod recipe;
mod refill;
mod shelf;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::future::join_all;
use sandbank_engine::{ImageName, SandboxId};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

pub use recipe::{PoolEntry, PoolStatus, Recipe};
pub(crate) use refill::run;
pub(crate) use shelf::Member;

use self::shelf::Shelf;
use crate::CreateRequest;
use crate::context::Context;
use crate::limits::{CONCURRENT_DESTROYS, MAX_POOL};
use crate::provider::Provider;

pub(crate) struct Pool {
    shelves: Mutex<Shelves>,
    /// There may be something to make.
    wanted: Notify,
    /// Held while a member is made, and by whoever has to know that none is.
    making: tokio::sync::Mutex<()>,
}

struct Shelves {
    all: Vec<Shelf>,
    /// Machines of ours, from before they are made until they are claimed or destroyed.
    owned: HashSet<SandboxId>,
    closed: bool,
}

impl Pool {
    pub(crate) fn new<'a>(
        engine: &'static str,
        entries: impl Iterator<Item = &'a PoolEntry>,
    ) -> Self {
        let mut room = MAX_POOL;
        let shelf = |entry: &PoolEntry| {
            let target = entry.size.min(room);
            room -= target;
            Shelf::new(engine, entry.recipe.clone(), target)
        };
        let all = entries.map(shelf).collect();
        Self {
            shelves: Mutex::new(Shelves { all, owned: HashSet::new(), closed: false }),
            wanted: Notify::new(),
            making: tokio::sync::Mutex::default(),
        }
    }

    /// A member that is what the request asks for; it is the caller's alone. Called while the
    /// registry gives the new sandbox its place: at every moment one of the two has it.
    pub(crate) fn claim(&self, request: &CreateRequest) -> Option<Member> {
        let mut shelves = self.lock();
        let shelf = shelves.all.iter_mut().find(|shelf| shelf.recipe.serves(request))?;
        let member = shelf.claim()?;
        shelves.owned.remove(&member.id);
        self.wanted.notify_one();
        Some(member)
    }

    /// Whoever asks this and then the registry misses nothing that is claimed in between.
    pub(crate) fn owns(&self, id: &SandboxId) -> bool {
        self.lock().owned.contains(id)
    }

    pub(crate) fn keeps(&self, image: &ImageName) -> bool {
        self.lock().all.iter().any(|shelf| shelf.recipe.image == *image)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !self.lock().all.is_empty()
    }

    /// Members that are ready.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        self.lock().all.iter().flat_map(|shelf| shelf.ids().cloned()).collect()
    }

    pub(crate) fn status(&self) -> Vec<PoolStatus> {
        self.lock().all.iter().map(Shelf::status).collect()
    }

    /// What could not be made of this image, or of any, perhaps can be now.
    pub(crate) fn try_again(&self, image: Option<&ImageName>) {
        let mut shelves = self.lock();
        let concerns = |shelf: &&mut Shelf| image.is_none_or(|image| shelf.recipe.image == *image);
        shelves.all.iter_mut().filter(concerns).for_each(Shelf::try_again_now);
        self.wanted.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Destroys every member of an image. None is made meanwhile; that none is made afterwards is for
/// the caller to see to.
pub(crate) async fn clear(context: &Context, provider: &Provider, image: &ImageName) {
    let _none_is_made = provider.pool.making.lock().await;
    let members: Vec<Member> = {
        let mut shelves = provider.pool.lock();
        let affected = shelves.all.iter_mut().filter(|shelf| shelf.recipe.image == *image);
        affected.flat_map(Shelf::clear).collect()
    };
    destroy_all(context, provider, members).await;
}

/// Destroys every member, and the one that is being made as soon as it is.
pub(crate) async fn drain(context: &Context, provider: &Provider) {
    let members: Vec<Member> = {
        let mut shelves = provider.pool.lock();
        shelves.closed = true;
        shelves.all.iter_mut().flat_map(Shelf::clear).collect()
    };
    destroy_all(context, provider, members).await;
    drop(provider.pool.making.lock().await);
    // What had died is perhaps not destroyed yet.
    let rest: Vec<SandboxId> = provider.pool.lock().owned.iter().cloned().collect();
    join_all(rest.iter().map(|id| destroy(context, provider, id))).await;
}

/// A member that has died or vanished is replaced.
pub(crate) async fn lost(context: &Context, provider: &Provider, id: &SandboxId) {
    let member = {
        let mut shelves = provider.pool.lock();
        let now = Instant::now();
        shelves.all.iter_mut().find_map(|shelf| {
            let member = shelf.lost(id, now)?;
            Some((member, shelf.recipe.image.clone()))
        })
    };
    let Some((member, image)) = member else { return };
    tracing::warn!(machine = %id, %image, "a ready machine has died; it is replaced");
    context.events.emit("pool.member_lost", None, json!({ "machine": id, "image": image }));
    destroy(context, provider, id).await;
    provider.pool.wanted.notify_one();
    // Not before: this may be the member's own watcher, which ends with it.
    drop(member);
}

async fn destroy_all(context: &Context, provider: &Provider, members: Vec<Member>) {
    futures_util::stream::iter(members)
        .for_each_concurrent(CONCURRENT_DESTROYS, async |member| {
            destroy(context, provider, &member.id).await;
        })
        .await;
}

/// What cannot be destroyed is given up to the sweep, which finds it without an owner.
async fn destroy(context: &Context, provider: &Provider, id: &SandboxId) {
    let destroyed = timeout(context.settings.stop_deadline, provider.engine.destroy(id)).await;
    match destroyed {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(machine = %id, %error, "a member of the pool stays"),
        Err(_) => tracing::warn!(machine = %id, "a member of the pool is slow to go"),
    }
    provider.pool.lock().owned.remove(id);
}
