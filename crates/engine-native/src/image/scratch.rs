//! Directories for work in progress, removed with their owner, or by the next one after a crash.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use sandbank_engine::{EngineError, SandboxId};

use crate::storage::remove_tree;

pub(super) struct Scratch {
    path: PathBuf,
    /// Locked while the work goes on, so that another process does not take it for a leftover.
    _lock: File,
}

impl Scratch {
    pub(super) fn new(parent: &Path) -> Result<Self, EngineError> {
        let path = parent.join(SandboxId::random().as_str());
        std::fs::create_dir(&path)
            .and_then(|()| {
                let lock = File::open(&path)?;
                rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                Ok(lock)
            })
            .map(|lock| Self { path: path.clone(), _lock: lock })
            .map_err(EngineError::io("create a work directory"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An empty directory in it.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, EngineError> {
        let path = self.path.join(name);
        std::fs::create_dir(&path).map_err(EngineError::io("create a work directory"))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "failed to clean up");
        }
    }
}

/// Removes what crashed work left in `parent`.
pub(super) fn clean(parent: &Path) -> Result<(), EngineError> {
    let step = "remove leftovers of an import";
    for entry in std::fs::read_dir(parent).map_err(EngineError::io(step))? {
        let path = entry.map_err(EngineError::io(step))?.path();
        let lock = File::open(&path).map_err(EngineError::io(step))?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_tree(&path).map_err(EngineError::io(step))?;
        }
    }
    Ok(())
}

/// Moves finished work to its place. Someone else's equal work that is already there wins.
pub(super) fn publish(finished: &Path, place: &Path) -> Result<(), EngineError> {
    match std::fs::rename(finished, place) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTEMPTY | libc::EEXIST)) => {
            Ok(())
        }
        other => other.map_err(EngineError::io("put finished work in its place")),
    }
}
