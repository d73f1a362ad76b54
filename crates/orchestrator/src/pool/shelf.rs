//! The ready machines of one recipe. Plain data under the pool's lock; nothing here waits.

use std::collections::VecDeque;
use std::time::Duration;

use sandbank_engine::SandboxId;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{PoolStatus, Recipe};
use crate::limits::{FIRST_REFILL_RETRY, LAST_REFILL_RETRY};
use crate::link::Reached;

/// A machine without an owner, whose runner has answered.
pub(crate) struct Member {
    pub(crate) id: SandboxId,
    pub(crate) reached: Reached,
    /// Waits for its death. Whoever takes the member watches it from then on.
    pub(super) _watcher: AbortOnDropHandle<()>,
}

pub(super) struct Shelf {
    engine: &'static str,
    pub(super) recipe: Recipe,
    target: usize,
    ready: VecDeque<Member>,
    being_made: usize,
    claimed_total: u64,
    missed_total: u64,
    /// After a failure: how long the wait is, and when it is over.
    setback: Option<(Duration, Instant)>,
    /// Somebody was told that it fails.
    told: bool,
}

impl Shelf {
    pub(super) fn new(engine: &'static str, recipe: Recipe, target: usize) -> Self {
        Self {
            engine,
            recipe,
            target,
            ready: VecDeque::new(),
            being_made: 0,
            claimed_total: 0,
            missed_total: 0,
            setback: None,
            told: false,
        }
    }

    /// The oldest member that is not known to be dead; its watcher sees to one that is.
    pub(super) fn claim(&mut self) -> Option<Member> {
        let alive = self.ready.iter().position(|member| !member.reached.client.is_closed());
        let member = alive.and_then(|place| self.ready.remove(place));
        match member {
            Some(_) => self.claimed_total += 1,
            None => self.missed_total += 1,
        }
        member
    }

    /// When the next member may be made; none when there are enough.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let lacking = self.ready.len() + self.being_made < self.target;
        lacking.then(|| self.setback.map_or(now, |(_, until)| until))
    }

    pub(super) fn begin(&mut self) {
        self.being_made += 1;
    }

    pub(super) fn done(&mut self, member: Member, now: Instant) {
        self.being_made -= 1;
        self.told = false;
        // Unless another one has died meanwhile.
        self.setback = self.setback.filter(|(_, until)| now < *until);
        self.ready.push_back(member);
    }

    /// True when nobody was told yet that it fails.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.being_made -= 1;
        self.set_back(now);
        !std::mem::replace(&mut self.told, true)
    }

    /// The next member has to wait, longer each time.
    pub(super) fn set_back(&mut self, now: Instant) {
        let wait = self.setback.map_or(FIRST_REFILL_RETRY, |(last, _)| 2 * last);
        let wait = wait.min(LAST_REFILL_RETRY);
        self.setback = Some((wait, now + wait));
    }

    /// One has died: whatever ended it may end the next one, too.
    pub(super) fn lost(&mut self, id: &SandboxId, now: Instant) -> Option<Member> {
        let place = self.ready.iter().position(|member| member.id == *id)?;
        let wait = (FIRST_REFILL_RETRY, now + FIRST_REFILL_RETRY);
        self.setback.get_or_insert(wait);
        self.ready.remove(place)
    }

    pub(super) fn try_again_now(&mut self) {
        self.setback = None;
    }

    pub(super) fn clear(&mut self) -> impl Iterator<Item = Member> + use<> {
        std::mem::take(&mut self.ready).into_iter()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &SandboxId> {
        self.ready.iter().map(|member| &member.id)
    }

    pub(super) fn status(&self) -> PoolStatus {
        PoolStatus {
            engine: self.engine,
            image: self.recipe.image.clone(),
            network: self.recipe.network,
            target: self.target,
            ready: self.ready.len(),
            being_made: self.being_made,
            claimed_total: self.claimed_total,
            missed_total: self.missed_total,
        }
    }
}
