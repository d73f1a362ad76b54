//! Limits, freezing and counting of machines, on cgroup v1 and v2.
//!
//! Every machine has one directory, `sandbank/<instance>/<id>`, in each hierarchy that is needed.
//! Machines are placed at clone time and never moved. On v1, directories are made ahead and
//! renamed, because a memory cgroup takes longer to make than the rest of a machine's mounts.

mod files;
mod mounts;
mod spares;
mod v1;
mod v2;

use std::os::fd::OwnedFd;

use sandbank_engine::{Control, EngineError, InstanceId, Limits, MachineStats, SandboxId};
use sandbank_protocol::CgroupVersion;

use crate::settings::CgroupChoice;

/// What the spawner needs to put a machine into its cgroups.
pub(crate) struct Placement {
    pub(crate) version: CgroupVersion,
    /// v1 files that the first process writes "0" to.
    pub(crate) tasks: Vec<OwnedFd>,
    /// v2 directory that it is cloned into.
    pub(crate) into: Option<OwnedFd>,
    /// The directory that the runner divides among its commands.
    pub(crate) commands: Option<OwnedFd>,
    pub(crate) oom_events: Option<OwnedFd>,
}

/// A limit that this host cannot enforce, and why.
#[derive(Debug, Clone)]
pub(crate) struct Unavailable {
    pub(crate) control: Control,
    pub(crate) reason: String,
}

pub(crate) trait Cgroups: Send + Sync {
    /// For `doctor`.
    fn describe(&self) -> String;
    fn version(&self) -> CgroupVersion;
    fn can_freeze(&self) -> bool;
    /// Whether machines are in cgroups of their own.
    fn separate(&self) -> bool;
    fn unavailable(&self) -> Vec<Unavailable>;
    /// A place for the machine, without limits yet: quick, because the spawner waits for it.
    fn prepare(&self, id: &SandboxId) -> Result<Placement, EngineError>;
    /// Sets the limits, and lets the runner, `runner_uid` on the host, make children for its
    /// commands. Done while the machine puts itself together, before anybody can use it.
    fn limit(&self, id: &SandboxId, limits: &Limits, runner_uid: u32) -> Result<(), EngineError>;
    fn freeze(&self, id: &SandboxId, frozen: bool) -> Result<(), EngineError>;
    /// Whether freezing was asked for, and whether every process has stopped.
    fn frozen(&self, id: &SandboxId) -> Result<Frozen, EngineError>;
    /// Kills whatever is in the machine's cgroup, frozen or not. More may be on its way.
    fn kill(&self, id: &SandboxId) -> Result<(), EngineError>;
    /// Removes the directories. `false` while the kernel still holds one; ask again.
    fn remove(&self, id: &SandboxId) -> Result<bool, EngineError>;
    fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError>;
    /// The limits that the kernel has for the machine, read back.
    fn enforced(&self, id: &SandboxId) -> Result<Enforced, EngineError>;
    /// Makes directories ahead, where that helps.
    fn refill(&self);
    /// Removes what was made ahead, and the instance's directory if no machine is left.
    fn close(&self);
}

/// None where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu_millis: Option<u64>,
    pub(crate) pids: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) asked: bool,
    pub(crate) complete: bool,
}

pub(crate) fn open(
    choice: CgroupChoice,
    instance: &InstanceId,
    ready: usize,
) -> Result<Box<dyn Cgroups>, EngineError> {
    let mounts = mounts::Mounts::read().map_err(EngineError::io("read the cgroup mounts"))?;
    let v2 = match choice {
        CgroupChoice::Auto => mounts.v2_has_all_controllers(),
        CgroupChoice::V1 => false,
        CgroupChoice::V2 => true,
    };
    if !v2 {
        return Ok(Box::new(v1::V1::open(&mounts, instance, ready)?));
    }
    match v2::V2::open(&mounts, instance) {
        Ok(v2) => Ok(Box::new(v2)),
        // An ordinary user without a delegated cgroup: machines go without, if that is accepted.
        Err(error) if !rustix::process::geteuid().is_root() => {
            tracing::debug!(%error, "no cgroup is delegated");
            Ok(Box::new(v1::V1::open(&mounts::Mounts::default(), instance, 0)?))
        }
        Err(error) => Err(error),
    }
}

/// Removes the cgroups that a dead daemon of another instance left empty, and says whether none is
/// left. Machines that outlive it keep theirs.
pub(crate) fn sweep(instance: &str) -> bool {
    let Ok(mounts) = mounts::Mounts::read() else { return false };
    let mut gone = true;
    for hierarchy in mounts.v1.iter().chain(&mounts.v2) {
        let own = hierarchy.path.join(hierarchy.own.trim_start_matches('/'));
        for place in [&hierarchy.path, &own] {
            gone &= files::remove_empty(&place.join("sandbank").join(instance)).unwrap_or(false);
        }
    }
    gone
}

/// CPU time per scheduling period; long periods keep bursts of a millisecond unthrottled.
const CPU_PERIOD_US: u64 = 100_000;

/// The kernel refuses shorter quotas.
const MIN_CPU_QUOTA_US: u64 = 1_000;

fn cpu_quota_us(limits: &Limits) -> u64 {
    (u64::from(limits.cpu_millis) * CPU_PERIOD_US / 1000).max(MIN_CPU_QUOTA_US)
}
