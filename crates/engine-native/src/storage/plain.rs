//! Workspaces as plain directories: work on every file system, without quota or snapshots.
//!
//! A deleted workspace is renamed into a trash directory and removed by a background thread, so
//! that a large tree does not hold up its caller. What a crash leaves there goes at the next open.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use sandbank_engine::{Control, EngineError, SandboxId};

use super::{Storage, hand_over, ids_in, make_private_dir, tree};

const DIR: &str = "workspaces";
const TRASH: &str = ".trash";

pub(super) struct Plain {
    root: PathBuf,
    /// Feeds the thread that removes trash; a mutex because `Storage` is shared.
    trash: Mutex<Sender<PathBuf>>,
}

pub(super) fn has_workspaces(data_dir: &Path) -> bool {
    ids_in(&data_dir.join(DIR)).is_ok_and(|ids| !ids.is_empty())
}

impl Plain {
    pub(super) fn open(data_dir: &Path) -> Result<Self, EngineError> {
        let root = data_dir.join(DIR);
        let trash_dir = root.join(TRASH);
        make_private_dir(&trash_dir)?;
        let (trash, waiting) = channel::<PathBuf>();
        for leftover in
            std::fs::read_dir(&trash_dir).map_err(EngineError::io("list the trash"))?.flatten()
        {
            let _ = trash.send(leftover.path());
        }
        std::thread::Builder::new()
            .name("workspace-trash".to_owned())
            .spawn(move || {
                for path in waiting {
                    if let Err(error) = tree::remove_tree(&path) {
                        tracing::warn!(%error, path = %path.display(), "failed to empty the trash");
                    }
                }
            })
            .map_err(EngineError::io("start the trash thread"))?;
        Ok(Self { root, trash: Mutex::new(trash) })
    }
}

impl Storage for Plain {
    fn kind(&self) -> &'static str {
        "plain"
    }

    fn enforces_quota(&self) -> bool {
        false
    }

    fn create(&self, id: &SandboxId, quota: Option<u64>) -> Result<PathBuf, EngineError> {
        if quota.is_some() {
            return Err(EngineError::ControlUnavailable {
                control: Control::DiskQuota,
                reason: "workspaces are plain directories; install btrfs-progs and use btrfs \
                         storage, or ask for no disk quota"
                    .to_owned(),
            });
        }
        let path = self.path(id);
        std::fs::create_dir(&path).map_err(EngineError::io("create the workspace"))?;
        hand_over(&path)?;
        Ok(path)
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn usage(&self, id: &SandboxId) -> Result<u64, EngineError> {
        match tree::disk_usage(&self.path(id)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(EngineError::NotFound(id.clone()))
            }
            other => other.map_err(EngineError::io("measure the workspace")),
        }
    }

    fn snapshot(&self, _id: &SandboxId, _to: &SandboxId) -> Result<PathBuf, EngineError> {
        Err(EngineError::Unavailable(
            "plain storage cannot snapshot a workspace; use btrfs storage".to_owned(),
        ))
    }

    fn delete(&self, id: &SandboxId) -> Result<(), EngineError> {
        // A random name: the same sandbox may have been deleted while its trash still waits.
        let doomed = self.root.join(TRASH).join(SandboxId::random().as_str());
        match std::fs::rename(self.path(id), &doomed) {
            Ok(()) => {
                let trash = self.trash.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let _ = trash.send(doomed);
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(EngineError::io("delete the workspace")(error)),
        }
    }

    fn list(&self) -> Result<Vec<SandboxId>, EngineError> {
        ids_in(&self.root)
    }

    fn close(&self) {}
}
