//! User namespaces, one range of ids each, made ahead.
//!
//! A range belongs to a machine from the moment its record is written until the machine is
//! destroyed; the records on disk are what a new daemon learns them from.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_engine::{EngineError, InstanceId};

use crate::host::{Host, KeptRanges};
use crate::limits::{UID_BASE, UID_RANGE, UID_SLOTS};
use crate::spawner::Spawner;

const CLAIM: &str = "claim a range of user ids";

/// First id of a range on the host.
pub(crate) fn uid_base(slot: u32) -> u32 {
    UID_BASE + slot % UID_SLOTS * UID_RANGE
}

pub(crate) struct UserNamespace {
    pub(crate) slot: u32,
    pub(crate) fd: OwnedFd,
}

pub(crate) struct UserNamespaces {
    spawner: Arc<Spawner>,
    /// Without root every machine has the daemon's own id, and there are no ranges to share.
    host: Option<Arc<Host>>,
    slots: Mutex<Slots>,
    /// None once closed: what is made ahead then goes back at once.
    ready: Mutex<Option<VecDeque<UserNamespace>>>,
    target: usize,
    /// Held while they are made ahead, and by whoever has to know that none is.
    refilling: tokio::sync::Mutex<()>,
}

impl UserNamespaces {
    /// `occupied` are the ranges of machines that are there already.
    pub(crate) fn new(
        spawner: Arc<Spawner>,
        host: Option<Arc<Host>>,
        instance: &InstanceId,
        target: usize,
        occupied: impl IntoIterator<Item = u32>,
    ) -> Result<Self, EngineError> {
        let (used, next) = (occupied.into_iter().collect(), first_slot(instance));
        let mut slots = Slots { used, leftovers: BTreeSet::new(), next };
        if let Some(host) = &host {
            let KeptRanges { lost, leftovers } =
                host.keep(&slots.used).map_err(EngineError::io(CLAIM))?;
            slots.leftovers = leftovers;
            if !lost.is_empty() {
                // Only those of machines that were dead when another daemon looked for them.
                tracing::warn!(ranges = ?lost, "another daemon has ranges of user ids of machines here");
            }
        }
        let ready = Mutex::new(Some(VecDeque::new()));
        let refilling = tokio::sync::Mutex::default();
        Ok(Self { spawner, host, slots: Mutex::new(slots), ready, target, refilling })
    }

    pub(crate) async fn take(&self) -> Result<UserNamespace, EngineError> {
        let ready = lock(&self.ready).as_mut().and_then(VecDeque::pop_front);
        match ready {
            Some(namespace) => Ok(namespace),
            None => self.make().await,
        }
    }

    /// The machine that used the range is gone.
    pub(crate) fn release(&self, slot: u32) {
        let mut slots = lock(&self.slots);
        self.host.iter().for_each(|host| host.release(slot));
        slots.used.remove(&slot);
    }

    pub(crate) async fn refill(&self) {
        let _refilling = self.refilling.lock().await;
        self.release_leftovers();
        while lock(&self.ready).as_ref().is_some_and(|ready| ready.len() < self.target) {
            match self.make().await {
                Ok(namespace) => match &mut *lock(&self.ready) {
                    Some(ready) => ready.push_back(namespace),
                    None => return self.release(namespace.slot),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot make a user namespace ahead");
                    return;
                }
            }
        }
    }

    /// One that is being made ahead is waited for, so that its range is not left behind.
    pub(crate) async fn close(&self) {
        let ready = lock(&self.ready).take();
        let _none_is_made = self.refilling.lock().await;
        for namespace in ready.into_iter().flatten() {
            self.release(namespace.slot);
        }
        self.release_leftovers();
    }

    fn release_leftovers(&self) {
        let Some(host) = &self.host else { return };
        if let Err(error) = host.release_unused(&mut lock(&self.slots).leftovers) {
            tracing::warn!(%error, "cannot tell which ranges of user ids are in use");
        }
    }

    async fn make(&self) -> Result<UserNamespace, EngineError> {
        let claimed = |slot| self.host.as_ref().map_or(Ok(true), |host| host.claim(slot));
        let slot = lock(&self.slots).claim(claimed);
        let slot = slot.map_err(EngineError::io(CLAIM))?.ok_or_else(|| {
            EngineError::Exhausted(format!("all {UID_SLOTS} ranges of user ids are in use"))
        })?;
        match self.spawner.user_namespace(uid_base(slot)).await {
            Ok(fd) => Ok(UserNamespace { slot, fd }),
            Err(error) => {
                self.release(slot);
                Err(error)
            }
        }
    }
}

struct Slots {
    used: BTreeSet<u32>,
    /// Of the daemon before this one, until its last processes are gone.
    leftovers: BTreeSet<u32>,
    /// Where the search starts. Going round leaves a range unused for long after a machine.
    next: u32,
}

impl Slots {
    /// `is_ours` says that no other daemon has it, and makes it so.
    fn claim(
        &mut self,
        is_ours: impl Fn(u32) -> std::io::Result<bool>,
    ) -> std::io::Result<Option<u32>> {
        for step in 0..UID_SLOTS {
            let slot = (self.next + step) % UID_SLOTS;
            let taken = self.used.contains(&slot) || self.leftovers.contains(&slot);
            if !taken && is_ours(slot)? {
                self.used.insert(slot);
                self.next = (slot + 1) % UID_SLOTS;
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }
}

/// Two daemons on one host start apart, so that they seldom ask for the same range.
fn first_slot(instance: &InstanceId) -> u32 {
    let mix = |sum: u32, byte: u8| sum.wrapping_mul(16_777_619) ^ u32::from(byte);
    instance.as_str().bytes().fold(2_166_136_261, mix) % UID_SLOTS
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_range_ends_where_ids_are_still_valid() {
        let last = uid_base(UID_SLOTS - 1);
        assert!(last.checked_add(UID_RANGE).is_some_and(|end| end <= 0x8000_0000));
    }

    #[test]
    fn every_range_is_given_out_once_and_then_none() {
        let mut slots = Slots {
            used: BTreeSet::from([7]),
            leftovers: BTreeSet::from([0]),
            next: UID_SLOTS - 2,
        };
        let another_has = |slot| Ok(slot != 9);
        let given: BTreeSet<u32> =
            std::iter::from_fn(|| slots.claim(another_has).unwrap()).collect();
        assert_eq!(given.len() as u32, UID_SLOTS - 3);
        assert!([0, 7, 9].iter().all(|slot| !given.contains(slot)));
        slots.used.remove(&3);
        assert_eq!(slots.claim(another_has).unwrap(), Some(3));
    }
}
