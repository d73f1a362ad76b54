//! Kept workspaces: under its name, one is always whole.
//!
//! It is made under a draft's name and renamed when it is ready; to be removed, it is renamed
//! first. Names that begin with a dot are nobody's, and go when the storage is next opened. Who
//! uses one is the caller's knowledge, and is asked for under the lock that both take.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_engine::{EngineError, SandboxId, WorkspaceId};
use sandbank_fault_points::{Point, reach};

use super::{Identity, Storage, ids_in};

pub(crate) struct Kept {
    root: PathBuf,
    /// Of the directory, when it was opened.
    identity: Identity,
    /// Held while one is made, and from the look at who uses one until it has lost its name.
    turn: Mutex<()>,
}

impl Kept {
    pub(crate) fn open(storage: &dyn Storage) -> Result<Self, EngineError> {
        let look = "look at the kept workspaces";
        let root = storage.kept_root().to_owned();
        let identity = Identity::of(&root).map_err(EngineError::io(look))?;
        for entry in std::fs::read_dir(&root).map_err(EngineError::io(look))? {
            let name = entry.map_err(EngineError::io(look))?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with('.')) else { continue };
            // It is in nobody's way.
            if let Err(error) = storage.delete_in(&root, name) {
                tracing::warn!(%error, name, "what is left of a kept workspace stays");
            }
        }
        Ok(Self { root, identity, turn: Mutex::default() })
    }

    pub(crate) fn path(&self, id: &WorkspaceId) -> PathBuf {
        self.root.join(id.as_str())
    }

    /// Whether the directory of all of them is the one that was opened.
    pub(crate) fn is_in_sight(&self) -> bool {
        Identity::of(&self.root).is_ok_and(|now| now == self.identity)
    }

    /// The workspace, and whether it was made for this call. It has what `quota` says from here
    /// on, even if it holds more already.
    pub(crate) fn provide(
        &self,
        storage: &dyn Storage,
        id: &WorkspaceId,
        quota: impl FnOnce() -> Option<u64>,
    ) -> Result<(PathBuf, bool), EngineError> {
        let _turn = self.turn();
        let (path, quota) = (self.path(id), quota());
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {
                if storage.quota_of(&path)? != quota {
                    storage.set_quota(&path, quota)?;
                }
                return Ok((path, false));
            }
            Ok(_) => {
                let text = format!("{} is not a workspace", path.display());
                return Err(EngineError::Internal(text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(EngineError::io("look at the workspace")(error)),
        }
        let draft = nobodys_name();
        let made = self.make(storage, &draft, &path, quota);
        if made.is_err() {
            // Once it has its name it stays.
            let _ = storage.delete_in(&self.root, &draft);
        }
        made.map(|()| (path, true))
    }

    /// Gives it the quota of those who still have it, if anybody has.
    pub(crate) fn adjust(
        &self,
        storage: &dyn Storage,
        id: &WorkspaceId,
        quota: impl FnOnce() -> Option<Option<u64>>,
    ) -> Result<(), EngineError> {
        let _turn = self.turn();
        let (path, Some(quota)) = (self.path(id), quota()) else { return Ok(()) };
        if path.is_dir() && storage.quota_of(&path)? != quota {
            storage.set_quota(&path, quota)?;
        }
        Ok(())
    }

    fn make(
        &self,
        storage: &dyn Storage,
        draft: &str,
        path: &Path,
        quota: Option<u64>,
    ) -> Result<(), EngineError> {
        let name = EngineError::io("name the workspace");
        let made = storage.create_in(&self.root, draft, quota)?;
        reach(Point::WorkspaceDrafted).map_err(EngineError::io("go on"))?;
        std::fs::rename(made, path).map_err(name)?;
        reach(Point::WorkspaceNamed).map_err(EngineError::io("go on"))
    }

    /// False when there is none of that name. What fails after it has lost its name is finished
    /// when the storage is next opened.
    pub(crate) fn remove(
        &self,
        storage: &dyn Storage,
        id: &WorkspaceId,
        users: impl FnOnce() -> Vec<SandboxId>,
    ) -> Result<bool, EngineError> {
        let doomed = nobodys_name();
        {
            let _turn = self.turn();
            let by = users();
            if !by.is_empty() {
                return Err(EngineError::WorkspaceInUse { id: id.clone(), by });
            }
            if !self.doom(id, &doomed)? {
                return Ok(false);
            }
        }
        self.finish_removal(storage, &doomed)
    }

    /// Only one that nobody has and that nothing is in; says whether it did.
    pub(crate) fn remove_empty(
        &self,
        storage: &dyn Storage,
        id: &WorkspaceId,
        is_used: impl FnOnce() -> bool,
    ) -> Result<bool, EngineError> {
        let doomed = nobodys_name();
        {
            let _turn = self.turn();
            let is_empty = || {
                let entries = std::fs::read_dir(self.path(id));
                entries.is_ok_and(|mut entries| entries.next().is_none())
            };
            if is_used() || !is_empty() || !self.doom(id, &doomed)? {
                return Ok(false);
            }
        }
        self.finish_removal(storage, &doomed)
    }

    /// Takes its name away; false when there is none of that name.
    fn doom(&self, id: &WorkspaceId, doomed: &str) -> Result<bool, EngineError> {
        match std::fs::rename(self.path(id), self.root.join(doomed)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            renamed => renamed.map_err(EngineError::io("remove the workspace")).map(|()| true),
        }
    }

    fn finish_removal(&self, storage: &dyn Storage, doomed: &str) -> Result<bool, EngineError> {
        reach(Point::WorkspaceDoomed).map_err(EngineError::io("go on"))?;
        storage.delete_in(&self.root, doomed)?;
        reach(Point::WorkspaceRemoved).map_err(EngineError::io("go on"))?;
        Ok(true)
    }

    pub(crate) fn list(&self) -> Result<Vec<WorkspaceId>, EngineError> {
        ids_in(&self.root)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No workspace's name begins with a dot.
fn nobodys_name() -> String {
    format!(".{}", SandboxId::random())
}
