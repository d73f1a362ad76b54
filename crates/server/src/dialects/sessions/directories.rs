//! Where the shells of sessions are, as far as their scripts went through this daemon. What is not
//! known is asked of the runner; nothing is lost when this is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_engine::SandboxId;
use sandbank_orchestrator::{SandboxInfo, SandboxState};

use super::path;
use super::script::shell_name;
use crate::app::App;
use crate::limits::MAX_KNOWN_DIRECTORIES;

#[derive(Default)]
pub(crate) struct Directories {
    known: Mutex<HashMap<SandboxId, String>>,
}

impl Directories {
    pub(super) fn set(&self, id: &SandboxId, cwd: &str) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN_DIRECTORIES && !known.contains_key(id) {
            known.clear();
        }
        known.insert(id.clone(), cwd.to_owned());
    }

    pub(super) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    /// In the clients' words. The workspace for a session that has ended or does not answer.
    pub(super) async fn of(&self, app: &App, info: &SandboxInfo) -> String {
        if let Some(known) = self.lock().get(&info.id) {
            return known.clone();
        }
        if info.state != SandboxState::Running {
            return path::ROOT.to_owned();
        }
        match app.orchestrator().shell_directory(&info.id, &shell_name()).await {
            Ok(Some(cwd)) => {
                let cwd = path::of_shell(&cwd);
                self.set(&info.id, &cwd);
                cwd
            }
            _ => path::ROOT.to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
