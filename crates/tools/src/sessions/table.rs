//! Which sessions have a place, and whose sandbox is just being ended. It decides, and ends nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::slot::Slot;
use crate::limits::MAX_LOST;

#[derive(Default)]
pub(super) struct Table {
    pub(super) slots: HashMap<String, Arc<Slot>>,
    /// Sessions whose sandbox is being ended, and by how many: a provider would still find it.
    closing: HashMap<String, usize>,
    /// Sessions whose sandbox ended without their asking, the newest last.
    lost: VecDeque<String>,
}

/// Whose place may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// That of the session that was used least.
    OfOthers,
    /// Nobody's, and none is waited for.
    IfFree,
}

/// What is ended, by whoever has it.
pub(super) struct Taken {
    pub(super) session: String,
    pub(super) slot: Option<Arc<Slot>>,
}

pub(super) enum Place {
    /// It is in use from now on.
    Has(Arc<Slot>),
    /// There is none before these are gone.
    After(Vec<Taken>),
    None(Lack),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    Busy,
    /// Its own sandbox is just being ended.
    OwnEnds,
    /// There is room as soon as those of others are gone.
    OthersEnd,
}

impl Table {
    /// A place for the session, if need be that of others. Those that are just ending have theirs
    /// until they are gone.
    pub(super) fn place(&mut self, session: &str, max: usize, room: Room) -> Place {
        if let Some(slot) = self.slots.get(session) {
            slot.begin_use();
            return Place::Has(slot.clone());
        }
        if self.closing.contains_key(session) {
            return Place::None(Lack::OwnEnds);
        }
        if self.slots.len() + self.closing.len() < max {
            let slot = Arc::new(Slot::new());
            slot.begin_use();
            self.slots.insert(session.to_owned(), slot.clone());
            return Place::Has(slot);
        }
        if self.slots.len() < max {
            return Place::None(Lack::OthersEnd);
        }
        // More than one where an earlier daemon was allowed more.
        let surplus = self.slots.len() + 1 - max;
        let idle = self.least_used();
        if idle.len() < surplus || room == Room::IfFree {
            return Place::None(Lack::Busy);
        }
        Place::After(idle.iter().take(surplus).filter_map(|name| self.take(name)).collect())
    }

    /// Those that nobody uses, the one used least first.
    fn least_used(&self) -> Vec<String> {
        let idle = self.slots.iter();
        let mut idle: Vec<_> =
            idle.filter_map(|(name, slot)| Some((slot.idle_since()?, name.clone()))).collect();
        idle.sort();
        idle.into_iter().map(|(_, name)| name).collect()
    }

    /// Those that nobody has used since then.
    pub(super) fn take_unused_since(&mut self, then: Instant) -> Vec<Taken> {
        let slots = self.slots.iter();
        let unused = slots.filter(|(_, slot)| slot.idle_since().is_some_and(|last| last <= then));
        let names: Vec<String> = unused.map(|(name, _)| name.clone()).collect();
        names.iter().filter_map(|name| self.take(name)).collect()
    }

    /// Whether this is still the slot of the session.
    pub(super) fn has(&self, session: &str, slot: &Arc<Slot>) -> bool {
        self.slots.get(session).is_some_and(|known| Arc::ptr_eq(known, slot))
    }

    /// Of a session that did not ask for it.
    fn take(&mut self, session: &str) -> Option<Taken> {
        let slot = self.slots.remove(session)?;
        self.note_lost(session);
        Some(self.closed(session, Some(slot)))
    }

    /// Of one that did; also where it has no place here, because a provider may still know its sandbox.
    pub(super) fn take_for_reset(&mut self, session: &str) -> Taken {
        self.forget_lost(session);
        let slot = self.slots.remove(session);
        self.closed(session, slot)
    }

    fn closed(&mut self, session: &str, slot: Option<Arc<Slot>>) -> Taken {
        *self.closing.entry(session.to_owned()).or_default() += 1;
        Taken { session: session.to_owned(), slot }
    }

    pub(super) fn note_lost(&mut self, session: &str) {
        self.forget_lost(session);
        if self.lost.len() == MAX_LOST {
            self.lost.pop_front();
        }
        self.lost.push_back(session.to_owned());
    }

    /// Whether it was known to be.
    pub(super) fn forget_lost(&mut self, session: &str) -> bool {
        let at = self.lost.iter().position(|name| name == session);
        at.and_then(|at| self.lost.remove(at)).is_some()
    }

    pub(super) fn end_closing(&mut self, session: &str) {
        if let Some(enders) = self.closing.get_mut(session) {
            *enders -= 1;
            if *enders == 0 {
                self.closing.remove(session);
            }
        }
    }
}
