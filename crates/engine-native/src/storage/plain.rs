//! Workspaces as plain directories: work on every file system, without quota or snapshots.
//!
//! A deleted workspace is renamed into a trash directory and removed by a background thread, so
//! that a large tree does not hold up its caller. What a crash leaves there goes at the next open.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use sandbank_engine::{Control, EngineError, SandboxId, WorkspaceId};

use super::{Storage, hand_over, has_any, ids_in, make_private_dir, tree};

const DIR: &str = "workspaces";
const KEPT: &str = "workspaces-kept";
const TRASH: &str = ".trash";

pub(super) struct Plain {
    root: PathBuf,
    kept: PathBuf,
    /// Feeds the thread that removes trash; a mutex because `Storage` is shared.
    trash: Mutex<Sender<PathBuf>>,
}

pub(super) fn has_workspaces(data_dir: &Path) -> bool {
    has_any::<SandboxId>(&data_dir.join(DIR)) || has_any::<WorkspaceId>(&data_dir.join(KEPT))
}

impl Plain {
    pub(super) fn open(data_dir: &Path) -> Result<Self, EngineError> {
        let root = data_dir.join(DIR);
        let trash_dir = root.join(TRASH);
        make_private_dir(&trash_dir)?;
        let kept = data_dir.join(KEPT);
        make_private_dir(&kept)?;
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
        Ok(Self { root, kept, trash: Mutex::new(trash) })
    }
}

/// Nothing holds a plain directory to a quota.
fn refuse(quota: Option<u64>) -> Result<(), EngineError> {
    match quota {
        None => Ok(()),
        Some(_) => Err(EngineError::ControlUnavailable {
            control: Control::DiskQuota,
            reason: "workspaces are plain directories; install btrfs-progs and use btrfs \
                     storage, or ask for no disk quota"
                .to_owned(),
        }),
    }
}

impl Storage for Plain {
    fn kind(&self) -> &'static str {
        "plain"
    }

    fn enforces_quota(&self) -> bool {
        false
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn kept_root(&self) -> &Path {
        &self.kept
    }

    fn create_in(
        &self,
        dir: &Path,
        name: &str,
        quota: Option<u64>,
    ) -> Result<PathBuf, EngineError> {
        refuse(quota)?;
        let path = dir.join(name);
        std::fs::create_dir(&path).map_err(EngineError::io("create the workspace"))?;
        hand_over(&path)?;
        Ok(path)
    }

    fn usage_of(&self, path: &Path) -> Result<Option<u64>, EngineError> {
        match tree::disk_usage(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some).map_err(EngineError::io("measure the workspace")),
        }
    }

    fn quota_of(&self, _path: &Path) -> Result<Option<u64>, EngineError> {
        Ok(None)
    }

    fn set_quota(&self, _path: &Path, quota: Option<u64>) -> Result<(), EngineError> {
        refuse(quota)
    }

    fn snapshot(&self, _id: &SandboxId, _to: &SandboxId) -> Result<PathBuf, EngineError> {
        Err(EngineError::Unavailable(
            "plain storage cannot snapshot a workspace; use btrfs storage".to_owned(),
        ))
    }

    fn delete_in(&self, dir: &Path, name: &str) -> Result<(), EngineError> {
        // A random name: the same one may have been deleted while its trash still waits.
        let doomed = self.root.join(TRASH).join(SandboxId::random().as_str());
        match std::fs::rename(dir.join(name), &doomed) {
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

    fn close(&self, _kept_in_use: bool) {}
}
