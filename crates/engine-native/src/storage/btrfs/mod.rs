//! Workspaces as btrfs subvolumes with a limit on what each may hold.
//!
//! Used on the data directory itself when that is btrfs with quotas already on, because turning
//! them on is the owner's decision for the whole file system; otherwise in a pool of our own.
//! Simple quotas are taken where the kernel has them (6.7), else full ones: creating costs the
//! same, but full ones make commits and deletions walk back-references.
//!
//! A process needs no privilege to make a subvolume in a directory it owns, and a nested one
//! has a limit of its own. The sandbox's system-call filter must refuse the btrfs calls (all of
//! `ioctl` type 0x94 but the three clone calls), or the quota is not in force.

mod ioctl;
mod loop_device;
mod pool;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sandbank_engine::{EngineError, SandboxId, WorkspaceId};

use self::ioctl::QuotaMode;
use self::pool::Pool;
use super::limits::{HOST_RESERVE_BYTES, MIN_QUOTA_BYTES};
use super::{Storage, hand_over, has_any, ids_in, make_private_dir, tree};

const SUBVOLUMES: &str = "subvolumes";
const KEPT: &str = "subvolumes-kept";
const BTRFS_SUPER_MAGIC: u64 = 0x9123_683E;
/// Where tools are looked for, whatever environment the daemon was started with.
const TOOL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) struct Btrfs {
    /// Holds one subvolume per sandbox.
    dir: PathBuf,
    /// Holds one subvolume per kept workspace.
    kept: PathBuf,
    /// `/sys/fs/btrfs/<id>/qgroups`: the live numbers of every subvolume.
    qgroups: PathBuf,
    /// The file system below the pool's sparse file, which can run out before the pool does.
    host: Option<PathBuf>,
    pool: Option<Pool>,
}

pub(super) fn has_workspaces(data_dir: &Path) -> bool {
    pool::exists(data_dir)
        || has_any::<SandboxId>(&data_dir.join(SUBVOLUMES))
        || has_any::<WorkspaceId>(&data_dir.join(KEPT))
}

fn qgroups_of(fs: &File) -> io::Result<PathBuf> {
    Ok(Path::new("/sys/fs/btrfs").join(ioctl::filesystem_id(fs)?).join("qgroups"))
}

fn is_btrfs_with_quotas(dir: &Path) -> bool {
    let Ok(fd) = File::open(dir) else { return false };
    let on_btrfs =
        rustix::fs::fstatfs(&fd).is_ok_and(|stat| stat.f_type as u64 == BTRFS_SUPER_MAGIC);
    on_btrfs && qgroups_of(&fd).is_ok_and(|qgroups| qgroups.is_dir())
}

fn enable_quotas(fs: &File) -> Result<(), EngineError> {
    let full = || ioctl::enable_quota(fs, QuotaMode::Full);
    let result = match ioctl::enable_quota(fs, QuotaMode::Simple) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => full(),
        other => other,
    };
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map_err(EngineError::io("turn on the pool's quotas")),
    }
}

/// A pool as a kernel without simple quotas makes it.
#[cfg(test)]
pub(super) fn open_with_full_quotas(dir: &Path, bytes: u64) -> Result<Btrfs, EngineError> {
    let pool = Pool::open(dir, bytes)?;
    let root = File::open(&pool.mount_point).map_err(EngineError::io("open the pool's root"))?;
    ioctl::enable_quota(&root, QuotaMode::Full).map_err(EngineError::io("turn on quotas"))?;
    Btrfs::open(dir, bytes)
}

impl Btrfs {
    pub(super) fn open(data_dir: &Path, pool_bytes: u64) -> Result<Self, EngineError> {
        if !pool::exists(data_dir) && is_btrfs_with_quotas(data_dir) {
            return Self::over(data_dir, None, None);
        }
        let pool = Pool::open(data_dir, pool_bytes)?;
        let root =
            File::open(&pool.mount_point).map_err(EngineError::io("open the pool's root"))?;
        let on = qgroups_of(&root).is_ok_and(|qgroups| qgroups.is_dir());
        if !on {
            enable_quotas(&root)?;
        }
        let top = pool.mount_point.clone();
        Self::over(&top, Some(data_dir.to_owned()), Some(pool))
    }

    fn over(top: &Path, host: Option<PathBuf>, pool: Option<Pool>) -> Result<Self, EngineError> {
        let (dir, kept) = (top.join(SUBVOLUMES), top.join(KEPT));
        make_private_dir(&dir)?;
        make_private_dir(&kept)?;
        let dir_fd = File::open(&dir).map_err(EngineError::io("open the workspace directory"))?;
        let qgroups =
            qgroups_of(&dir_fd).map_err(EngineError::io("identify the workspace file system"))?;
        if !qgroups.is_dir() {
            return Err(EngineError::Unavailable(format!(
                "{} is missing: mount sysfs, which tells what each workspace takes",
                qgroups.display()
            )));
        }
        Ok(Self { dir, kept, qgroups, host, pool })
    }

    fn check_room(&self) -> Result<(), EngineError> {
        let Some(host) = &self.host else { return Ok(()) };
        let stat = rustix::fs::statvfs(host)
            .map_err(|errno| EngineError::io("measure the host's free space")(errno.into()))?;
        let free = stat.f_bavail * stat.f_frsize;
        if free < HOST_RESERVE_BYTES {
            return Err(EngineError::StorageFull(format!(
                "only {free} bytes are free below {}; {HOST_RESERVE_BYTES} are kept in reserve",
                host.display()
            )));
        }
        Ok(())
    }

    /// None when it is not there.
    fn open_workspace(&self, path: &Path) -> Result<Option<File>, EngineError> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some).map_err(EngineError::io("open the workspace")),
        }
    }

    fn qgroup(&self, workspace: &File, attribute: &str) -> io::Result<u64> {
        let id = ioctl::subvolume_id(workspace)?;
        let text = std::fs::read_to_string(self.qgroups.join(format!("0_{id}")).join(attribute))?;
        text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn destroy(&self, dir: &Path, name: &str) -> io::Result<()> {
        match File::open(dir).and_then(|dir| ioctl::destroy(dir, name)) {
            // Nested subvolumes, or not a subvolume at all.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTEMPTY | libc::EINVAL)) => {
                tree::remove_tree(&dir.join(name))
            }
            other => other,
        }
    }
}

fn at_least(quota: u64) -> u64 {
    quota.max(MIN_QUOTA_BYTES)
}

impl Storage for Btrfs {
    fn kind(&self) -> &'static str {
        "btrfs"
    }

    fn enforces_quota(&self) -> bool {
        true
    }

    fn root(&self) -> &Path {
        &self.dir
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
        self.check_room()?;
        // Opened for each call: a descriptor that is kept would keep the pool from being unmounted.
        File::open(dir)
            .and_then(|dir| ioctl::create(dir, name, quota.map(at_least)))
            .map_err(EngineError::io("create the workspace"))?;
        let path = dir.join(name);
        hand_over(&path)?;
        Ok(path)
    }

    fn usage_of(&self, path: &Path) -> Result<Option<u64>, EngineError> {
        let Some(workspace) = self.open_workspace(path)? else { return Ok(None) };
        let step = "measure the workspace";
        let settled = self.qgroup(&workspace, "referenced").map_err(EngineError::io(step))?;
        // Written, but not yet given to the file system's trees.
        let pending = self.qgroup(&workspace, "rsv_data").map_err(EngineError::io(step))?;
        Ok(Some(settled + pending))
    }

    fn quota_of(&self, path: &Path) -> Result<Option<u64>, EngineError> {
        let Some(workspace) = self.open_workspace(path)? else { return Ok(None) };
        let quota = self
            .qgroup(&workspace, "max_referenced")
            .map_err(EngineError::io("read the workspace's quota"))?;
        Ok(Some(quota).filter(|bytes| *bytes > 0))
    }

    fn set_quota(&self, path: &Path, quota: Option<u64>) -> Result<(), EngineError> {
        File::open(path)
            .and_then(|workspace| ioctl::limit(workspace, quota.map(at_least)))
            .map_err(EngineError::io("set the workspace's quota"))
    }

    fn snapshot(&self, id: &SandboxId, to: &SandboxId) -> Result<PathBuf, EngineError> {
        self.check_room()?;
        let workspace = self.open_workspace(&self.path(id))?;
        let workspace = workspace.ok_or_else(|| EngineError::NotFound(id.clone()))?;
        let quota = self.quota_of(&self.path(id))?;
        File::open(&self.dir)
            .and_then(|dir| ioctl::snapshot(dir, to.as_str(), &workspace, quota))
            .map_err(EngineError::io("snapshot the workspace"))?;
        Ok(self.path(to))
    }

    fn delete_in(&self, dir: &Path, name: &str) -> Result<(), EngineError> {
        let Some(workspace) = self.open_workspace(&dir.join(name))? else { return Ok(()) };
        let qgroup = ioctl::subvolume_id(&workspace).ok();
        drop(workspace);
        match self.destroy(dir, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(EngineError::io("delete the workspace")(error));
            }
            _ => {}
        }
        if let Some(qgroup) = qgroup {
            // Kernels since 6.11 do this themselves when the last block is free, and refuse now.
            let _ = File::open(dir).and_then(|dir| ioctl::remove_qgroup(dir, qgroup));
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<SandboxId>, EngineError> {
        ids_in(&self.dir)
    }

    fn close(&self, kept_in_use: bool) {
        if let Some(pool) = &self.pool
            && !kept_in_use
            && self.list().is_ok_and(|ids| ids.is_empty())
        {
            pool.unmount();
        }
    }
}
