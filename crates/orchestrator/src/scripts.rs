//! Which scripts a sandbox's shells were given last, so that one of them can be asked for instead
//! of every command that the runner remembers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_protocol::{CommandId, ShellName};

use crate::limits::{SCRIPTS_PER_SHELL, SHELLS_REMEMBERED};

#[derive(Default)]
pub(crate) struct Scripts {
    /// Oldest first.
    by_shell: Mutex<BTreeMap<ShellName, VecDeque<CommandId>>>,
}

impl Scripts {
    pub(crate) fn note(&self, shell: &ShellName, script: &CommandId) {
        let mut shells = self.lock();
        if shells.len() >= SHELLS_REMEMBERED && !shells.contains_key(shell) {
            // No runner of ours has as many; the one who asks next has it list them.
            shells.clear();
        }
        let scripts = shells.entry(shell.clone()).or_default();
        scripts.push_back(script.clone());
        let surplus = scripts.len().saturating_sub(SCRIPTS_PER_SHELL);
        scripts.drain(..surplus);
    }

    /// Newest first.
    pub(crate) fn of(&self, shell: &ShellName) -> Vec<CommandId> {
        self.lock().get(shell).into_iter().flatten().rev().cloned().collect()
    }

    /// This one has ended: nobody asks for those before it any more.
    pub(crate) fn forget_before(&self, shell: &ShellName, script: &CommandId) {
        if let Some(scripts) = self.lock().get_mut(shell)
            && let Some(place) = scripts.iter().position(|id| id == script)
        {
            scripts.drain(..place);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ShellName, VecDeque<CommandId>>> {
        self.by_shell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
