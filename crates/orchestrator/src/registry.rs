//! Which sandboxes there are. A key belongs to at most one sandbox that is not on its way out,
//! and taking a place for a new one is one step under one lock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_engine::SandboxId;

use crate::sandbox::SharedSandbox;
use crate::{OrchestratorError, SandboxKey};

#[derive(Default)]
pub(crate) struct Registry {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    /// Everything that may have a machine.
    by_id: HashMap<SandboxId, SharedSandbox>,
    /// Without those on their way out.
    by_key: HashMap<SandboxKey, SharedSandbox>,
    closed: bool,
}

pub(crate) enum Claim<T> {
    Existing(SharedSandbox),
    New(SharedSandbox, T),
    Full,
}

impl Registry {
    /// The sandbox with this key, or a new one from `make` if there is room.
    pub(crate) fn claim<T>(
        &self,
        key: &SandboxKey,
        max: usize,
        make: impl FnOnce() -> Result<(SharedSandbox, T), OrchestratorError>,
    ) -> Result<Claim<T>, OrchestratorError> {
        let mut tables = self.tables();
        if tables.closed {
            return Err(OrchestratorError::ShuttingDown);
        }
        if let Some(sandbox) = tables.by_key.get(key) {
            return Ok(Claim::Existing(sandbox.clone()));
        }
        if tables.by_id.len() >= max {
            return Ok(Claim::Full);
        }
        let (sandbox, driver) = make()?;
        tables.insert(sandbox.clone());
        Ok(Claim::New(sandbox, driver))
    }

    /// A sandbox that was there before the daemon; it counts even above the limit.
    pub(crate) fn adopt(&self, sandbox: SharedSandbox, ending: bool) {
        let mut tables = self.tables();
        if ending {
            tables.by_id.insert(sandbox.facts.id.clone(), sandbox);
        } else {
            tables.insert(sandbox);
        }
    }

    /// Gives up the key; the sandbox keeps its place until [`Registry::remove`].
    pub(crate) fn release_key(&self, key: &SandboxKey, id: &SandboxId) {
        let mut tables = self.tables();
        if tables.by_key.get(key).is_some_and(|holder| holder.id() == id) {
            tables.by_key.remove(key);
        }
    }

    pub(crate) fn remove(&self, id: &SandboxId) {
        self.tables().by_id.remove(id);
    }

    pub(crate) fn find(&self, id: &SandboxId) -> Option<SharedSandbox> {
        self.tables().by_id.get(id).cloned()
    }

    /// The one that has the key, which those on their way out have not.
    pub(crate) fn find_key(&self, key: &SandboxKey) -> Option<SharedSandbox> {
        self.tables().by_key.get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<SharedSandbox> {
        self.tables().by_id.values().cloned().collect()
    }

    /// No new sandbox from here on.
    pub(crate) fn close(&self) {
        self.tables().closed = true;
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn insert(&mut self, sandbox: SharedSandbox) {
        self.by_key.insert(sandbox.facts.key.clone(), sandbox.clone());
        self.by_id.insert(sandbox.facts.id.clone(), sandbox);
    }
}
