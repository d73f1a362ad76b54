//! Machines as this process knows them.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandbank_engine::{Death, DeathCause, DeathWatch, EngineError, SandboxId};
use tokio::io::unix::AsyncFd;
use tokio_util::task::AbortOnDropHandle;

use crate::limits::OOM_KILL_SETTLED;
use crate::machine::Record;

/// The machine's first process: readable when it has died.
pub(super) type ProcessFd = Arc<AsyncFd<OwnedFd>>;

pub(super) struct Entry {
    /// Held by `create`, `destroy`, `pause` and `resume`: one of them at a time.
    pub(super) busy: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
    death: Death,
}

#[derive(Default)]
struct Known {
    record: Option<Record>,
    process: Option<ProcessFd>,
    oom_kills: OomKills,
    /// It is being killed on request.
    doomed: bool,
    /// Writes down what its runner says, for as long as this is here.
    log: Option<AbortOnDropHandle<()>>,
}

/// Out-of-memory kills, as they were counted while the machine seemed alive. The kernel counts one
/// before its victim is dead: only after a while it is clear that the machine was not the victim.
#[derive(Default)]
struct OomKills {
    counted: u64,
    /// When that count was first seen.
    since: Option<Instant>,
    /// Those before.
    survived: u64,
}

impl OomKills {
    fn count(&mut self, count: u64, now: Instant) {
        if count > self.counted {
            *self = Self { counted: count, since: Some(now), survived: self.survived(now) };
        }
    }

    fn survived(&self, now: Instant) -> u64 {
        let settled = self.since.is_some_and(|since| now >= since + OOM_KILL_SETTLED);
        if settled { self.counted } else { self.survived }
    }
}

impl Entry {
    pub(super) fn new(record: Option<Record>) -> Arc<Self> {
        Arc::new(Self {
            busy: tokio::sync::Mutex::new(()),
            known: Mutex::new(Known { record, ..Known::default() }),
            death: Death::default(),
        })
    }

    pub(super) fn record(&self) -> Option<Record> {
        self.known().record.clone()
    }

    pub(super) fn set_record(&self, record: Record) {
        self.known().record = Some(record);
    }

    /// Nothing of the machine is left: what the record names may be another's from now on.
    pub(super) fn forget_record(&self) {
        self.known().record = None;
    }

    pub(super) fn saw_oom_kills(&self, count: u64) {
        if !self.is_dead() {
            self.known().oom_kills.count(count, Instant::now());
        }
    }

    pub(super) fn survived_oom_kills(&self) -> u64 {
        self.known().oom_kills.survived(Instant::now())
    }

    pub(super) fn process(&self) -> Option<ProcessFd> {
        self.known().process.clone()
    }

    pub(super) fn set_process(&self, process: ProcessFd) {
        self.known().process = Some(process);
    }

    pub(super) fn set_log(&self, log: AbortOnDropHandle<()>) {
        self.known().log = Some(log);
    }

    pub(super) fn set_doomed(&self) {
        self.known().doomed = true;
    }

    /// Whether a SIGKILL needs no further explanation.
    pub(super) fn is_doomed(&self) -> bool {
        self.known().doomed
    }

    pub(super) fn set_dead(&self, cause: DeathCause) {
        self.death.tell(cause);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.death.is_told()
    }

    pub(super) fn death(&self) -> DeathWatch {
        self.death.listen()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(super) struct Table {
    entries: Mutex<HashMap<SandboxId, Arc<Entry>>>,
    /// Machines of the engine's own, that `list` does not show while they live.
    hidden: Mutex<HashSet<SandboxId>>,
}

impl Table {
    pub(super) fn get(&self, id: &SandboxId) -> Option<Arc<Entry>> {
        self.entries().get(id).cloned()
    }

    pub(super) fn find(&self, id: &SandboxId) -> Result<Arc<Entry>, EngineError> {
        self.get(id).ok_or_else(|| EngineError::NotFound(id.clone()))
    }

    /// For a new machine; the id must not be taken.
    pub(super) fn reserve(&self, id: &SandboxId) -> Result<Arc<Entry>, EngineError> {
        let mut entries = self.entries();
        if entries.contains_key(id) {
            return Err(EngineError::Internal(format!("machine {id} exists already")));
        }
        let entry = Entry::new(None);
        entries.insert(id.clone(), Arc::clone(&entry));
        Ok(entry)
    }

    pub(super) fn get_or_insert(&self, id: &SandboxId) -> Arc<Entry> {
        let entry = || Entry::new(None);
        Arc::clone(self.entries().entry(id.clone()).or_insert_with(entry))
    }

    pub(super) fn insert(&self, id: SandboxId, entry: Arc<Entry>) {
        self.entries().insert(id, entry);
    }

    pub(super) fn remove(&self, id: &SandboxId) {
        self.entries().remove(id);
        self.hidden().remove(id);
    }

    pub(super) fn hide(&self, id: &SandboxId) {
        self.hidden().insert(id.clone());
    }

    pub(super) fn is_hidden(&self, id: &SandboxId) -> bool {
        self.hidden().contains(id)
    }

    pub(super) fn all(&self) -> Vec<(SandboxId, Arc<Entry>)> {
        self.entries().iter().map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
    }

    fn hidden(&self) -> MutexGuard<'_, HashSet<SandboxId>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_out_of_memory_kill_was_survived_when_the_machine_still_lives_a_while_later() {
        let start = Instant::now();
        let mut kills = OomKills::default();
        assert_eq!(kills.survived(start), 0);
        kills.count(2, start);
        kills.count(2, start + OOM_KILL_SETTLED / 2);
        assert_eq!(kills.survived(start + OOM_KILL_SETTLED / 2), 0, "its victim may be dying");
        let later = start + OOM_KILL_SETTLED;
        assert_eq!(kills.survived(later), 2);
        kills.count(3, later);
        assert_eq!(kills.survived(later), 2, "the third may have been the machine's end");
        assert_eq!(kills.survived(later + OOM_KILL_SETTLED), 3);
    }
}
