//! How often what happened, for those who watch the daemon. Every word that is counted under stands in the program,
//! so nothing that a caller says makes another one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Since the daemon's start, but for what is there now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// By tool, and by `done` or the code of what went wrong.
    pub calls: BTreeMap<(&'static str, &'static str), u64>,
    /// Times that a caller was told that there are no tools, by the gate's code.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Sessions whose sandbox is known here now.
    pub sessions: usize,
    /// Workspaces that were to be filled: `done` or `failed`.
    pub seeds: BTreeMap<&'static str, u64>,
    /// Calls that a rule or a person decided about, by how that ended.
    pub approvals: BTreeMap<&'static str, u64>,
    /// Questions that wait for a person now.
    pub approvals_waiting: usize,
}

/// One of them, while it grows.
#[derive(Debug)]
pub(crate) struct Tally<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Copy> Tally<K> {
    pub(crate) fn add(&self, key: K, times: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(key).or_default() += times;
    }

    pub(crate) fn read(&self) -> BTreeMap<K, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
