//! User namespaces, one range of ids each, made ahead.
//!
//! A range belongs to a machine from the moment its record is written until the machine is
//! destroyed; the records on disk are what a new daemon learns them from.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_engine::{EngineError, InstanceId};

use crate::limits::{UID_BASE, UID_RANGE, UID_SLOTS};
use crate::spawner::Spawner;

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
    slots: Mutex<Slots>,
    ready: Mutex<VecDeque<UserNamespace>>,
    target: usize,
}

impl UserNamespaces {
    /// `occupied` are the ranges of machines that are there already.
    pub(crate) fn new(
        spawner: Arc<Spawner>,
        instance: &InstanceId,
        target: usize,
        occupied: impl IntoIterator<Item = u32>,
    ) -> Self {
        let mut slots = Slots { used: BTreeSet::new(), next: first_slot(instance) };
        slots.used.extend(occupied);
        Self { spawner, slots: Mutex::new(slots), ready: Mutex::new(VecDeque::new()), target }
    }

    pub(crate) async fn take(&self) -> Result<UserNamespace, EngineError> {
        let ready = lock(&self.ready).pop_front();
        match ready {
            Some(namespace) => Ok(namespace),
            None => self.make().await,
        }
    }

    /// The machine that used the range is gone.
    pub(crate) fn release(&self, slot: u32) {
        lock(&self.slots).used.remove(&slot);
    }

    pub(crate) async fn refill(&self) {
        while lock(&self.ready).len() < self.target {
            match self.make().await {
                Ok(namespace) => lock(&self.ready).push_back(namespace),
                Err(error) => {
                    tracing::warn!(%error, "cannot make a user namespace ahead");
                    return;
                }
            }
        }
    }

    pub(crate) fn close(&self) {
        let ready = std::mem::take(&mut *lock(&self.ready));
        for namespace in ready {
            self.release(namespace.slot);
        }
    }

    async fn make(&self) -> Result<UserNamespace, EngineError> {
        let slot = lock(&self.slots).claim().ok_or_else(|| {
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
    /// Where the search starts. Going round leaves a range unused for long after a machine.
    next: u32,
}

impl Slots {
    fn claim(&mut self) -> Option<u32> {
        let slot = (0..UID_SLOTS)
            .map(|step| (self.next + step) % UID_SLOTS)
            .find(|slot| !self.used.contains(slot))?;
        self.used.insert(slot);
        self.next = (slot + 1) % UID_SLOTS;
        Some(slot)
    }
}

/// Two daemons on one host start apart, so that they seldom give out the same range.
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
        let mut slots = Slots { used: BTreeSet::from([7]), next: UID_SLOTS - 2 };
        let given: BTreeSet<u32> = std::iter::from_fn(|| slots.claim()).collect();
        assert_eq!(given.len() as u32, UID_SLOTS - 1);
        assert!(!given.contains(&7));
        slots.used.remove(&3);
        assert_eq!(slots.claim(), Some(3));
    }
}
