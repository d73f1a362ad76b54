//! Where workspaces live: one directory per sandbox, and one per kept workspace beside them, with a
//! quota where it can be enforced.
//!
//! `btrfs` keeps each workspace in a subvolume, on the data directory's own file system or in a
//! pool of our own making; `plain` keeps directories and refuses quotas. On disk everything
//! belongs to the canonical ids; mounts into sandboxes are idmapped by others. Nothing here
//! opens a path that a sandbox wrote, except to remove or measure it by descriptor.

mod btrfs;
mod kept;
mod limits;
mod plain;
mod tree;

#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sandbank_engine::{EngineError, SandboxId};

pub(crate) use kept::Kept;
pub(crate) use tree::{disk_usage, remove_tree, remove_tree_at};

/// Which storage the configuration asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StorageKind {
    /// What the data directory already has; in a new one btrfs where it can be had, else plain.
    #[default]
    Auto,
    Btrfs,
    Plain,
}

/// Owner of every workspace's root on disk, whatever range the sandbox runs in.
const WORKSPACE_OWNER: u32 = 1000;

pub(crate) trait Storage: Send + Sync {
    fn kind(&self) -> &'static str;

    fn enforces_quota(&self) -> bool;

    /// The directory that holds every machine's own workspace.
    fn root(&self) -> &Path;

    /// The directory that holds the kept ones, on the same file system.
    fn kept_root(&self) -> &Path;

    /// Makes an empty workspace in one of the two directories. One that is already there is an
    /// error, and is left alone.
    fn create_in(&self, dir: &Path, name: &str, quota: Option<u64>)
    -> Result<PathBuf, EngineError>;

    /// Bytes the workspace takes, metadata included where the file system says so; none when it
    /// is not there.
    fn usage_of(&self, path: &Path) -> Result<Option<u64>, EngineError>;

    /// What holds the workspace, if anything does.
    fn quota_of(&self, path: &Path) -> Result<Option<u64>, EngineError>;

    fn set_quota(&self, path: &Path, quota: Option<u64>) -> Result<(), EngineError>;

    /// Takes the workspace away at once; its blocks are freed in the background. Idempotent.
    fn delete_in(&self, dir: &Path, name: &str) -> Result<(), EngineError>;

    /// A machine's own.
    fn create(&self, id: &SandboxId, quota: Option<u64>) -> Result<PathBuf, EngineError> {
        self.create_in(self.root(), id.as_str(), quota)
    }

    fn path(&self, id: &SandboxId) -> PathBuf {
        self.root().join(id.as_str())
    }

    fn usage(&self, id: &SandboxId) -> Result<u64, EngineError> {
        let usage = self.usage_of(&self.path(id))?;
        usage.ok_or_else(|| EngineError::NotFound(id.clone()))
    }

    /// A writable copy of the workspace as it is now, with the same quota.
    #[allow(dead_code, reason = "checkpoints are made of it; the engine trait has none yet")]
    fn snapshot(&self, id: &SandboxId, to: &SandboxId) -> Result<PathBuf, EngineError>;

    fn delete(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.delete_in(self.root(), id.as_str())
    }

    /// Every machine's own workspace, including half-made ones.
    fn list(&self) -> Result<Vec<SandboxId>, EngineError>;

    /// Unmounts what `open` mounted when no machine is left that has a workspace: one of its own,
    /// or, as the caller knows, a kept one.
    fn close(&self, kept_in_use: bool);
}

/// What a path led to: once more is mounted or less, it leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = std::fs::symlink_metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

pub(crate) fn open(
    data_dir: &Path,
    kind: StorageKind,
    pool_bytes: u64,
) -> Result<Box<dyn Storage>, EngineError> {
    std::fs::create_dir_all(data_dir).map_err(EngineError::io("create the data directory"))?;
    // Mount points and loop backing files are compared by path, so it must have one spelling.
    let data_dir =
        data_dir.canonicalize().map_err(EngineError::io("resolve the data directory"))?;
    match kind {
        StorageKind::Plain => Ok(Box::new(plain::Plain::open(&data_dir)?)),
        StorageKind::Btrfs => Ok(Box::new(btrfs::Btrfs::open(&data_dir, pool_bytes)?)),
        StorageKind::Auto => open_auto(&data_dir, pool_bytes),
    }
}

/// Workspaces of live sandboxes decide: a pool that is there but cannot be opened is an error,
/// never a reason to start over with plain directories, and the other way round.
fn open_auto(data_dir: &Path, pool_bytes: u64) -> Result<Box<dyn Storage>, EngineError> {
    // Only root can mount a pool; trying would leave a file that looks like one.
    let rootless = !rustix::process::geteuid().is_root();
    if !btrfs::has_workspaces(data_dir) && (rootless || plain::has_workspaces(data_dir)) {
        return Ok(Box::new(plain::Plain::open(data_dir)?));
    }
    match btrfs::Btrfs::open(data_dir, pool_bytes) {
        Ok(btrfs) => Ok(Box::new(btrfs)),
        Err(error) if btrfs::has_workspaces(data_dir) => Err(error),
        Err(error) => {
            tracing::warn!(%error, "btrfs storage cannot be had: workspaces have no quota");
            Ok(Box::new(plain::Plain::open(data_dir)?))
        }
    }
}

fn ids_in<Id: FromStr + Ord>(dir: &Path) -> Result<Vec<Id>, EngineError> {
    let entries = std::fs::read_dir(dir).map_err(EngineError::io("list the workspaces"))?;
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(EngineError::io("list the workspaces"))?;
        if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Whether a directory holds anything with such a name.
fn has_any<Id: FromStr + Ord>(dir: &Path) -> bool {
    ids_in::<Id>(dir).is_ok_and(|ids| !ids.is_empty())
}

fn make_private_dir(dir: &Path) -> Result<(), EngineError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(EngineError::io("create the workspace directory"))
}

/// Gives a new workspace root its canonical owner and mode.
fn hand_over(dir: &Path) -> Result<(), EngineError> {
    use std::os::unix::fs::PermissionsExt;
    let owner = Some(WORKSPACE_OWNER);
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))
        .and_then(|()| match rustix::process::geteuid().is_root() {
            true => std::os::unix::fs::chown(dir, owner, owner),
            // Without root the sandbox's user is the daemon's, who owns it already.
            false => Ok(()),
        })
        .map_err(EngineError::io("give the workspace to its user"))
}
