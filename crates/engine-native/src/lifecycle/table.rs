//! Machines as this process knows them.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_engine::{DeathCause, EngineError, SandboxId};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::machine::Record;

/// The machine's first process: readable when it has died.
pub(super) type ProcessFd = Arc<AsyncFd<OwnedFd>>;

pub(super) struct Entry {
    /// Held by `create`, `destroy`, `pause` and `resume`: one of them at a time.
    pub(super) busy: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
    death: watch::Sender<Option<DeathCause>>,
}

#[derive(Default)]
struct Known {
    record: Option<Record>,
    process: Option<ProcessFd>,
}

impl Entry {
    pub(super) fn new(record: Option<Record>) -> Arc<Self> {
        Arc::new(Self {
            busy: tokio::sync::Mutex::new(()),
            known: Mutex::new(Known { record, process: None }),
            death: watch::Sender::new(None),
        })
    }

    pub(super) fn record(&self) -> Option<Record> {
        self.known().record.clone()
    }

    pub(super) fn set_record(&self, record: Record) {
        self.known().record = Some(record);
    }

    pub(super) fn process(&self) -> Option<ProcessFd> {
        self.known().process.clone()
    }

    pub(super) fn set_process(&self, process: ProcessFd) {
        self.known().process = Some(process);
    }

    pub(super) fn set_dead(&self, cause: DeathCause) {
        self.death.send_if_modified(|death| {
            let first = death.is_none();
            death.get_or_insert(cause);
            first
        });
    }

    pub(super) fn is_dead(&self) -> bool {
        self.death.borrow().is_some()
    }

    pub(super) fn death(&self) -> watch::Receiver<Option<DeathCause>> {
        self.death.subscribe()
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
