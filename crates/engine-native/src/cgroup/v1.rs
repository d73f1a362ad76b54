//! cgroup v1: memory, cpu, cpuacct, pids and freezer, each in its own hierarchy or together.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_engine::{Control, EngineError, InstanceId, Limits, MachineStats, SandboxId};
use sandbank_protocol::CgroupVersion;

use super::files::{
    gone, kill_all, make_dir, open_dir, read_key, read_u64, remove_tree, set, write,
};
use super::mounts::{Mounts, make_base};
use super::spares::{Spare, Spares};
use super::{CPU_PERIOD_US, Cgroups, Enforced, Frozen, Placement, Unavailable, cpu_quota_us};

/// What a machine needs: the controller, and the control it enforces.
const CONTROLLERS: [(&str, Option<Control>); 5] = [
    ("memory", Some(Control::MemoryLimit)),
    ("cpu", Some(Control::CpuLimit)),
    ("pids", Some(Control::PidsLimit)),
    ("cpuacct", None),
    ("freezer", None),
];

pub(super) struct V1 {
    hierarchies: Hierarchies,
    /// The v2 hierarchy of a hybrid host, when the daemon is not at its root.
    unified: Option<PathBuf>,
    unavailable: Vec<Unavailable>,
    spares: Spares,
    /// Machines that are in a spare's directories, not yet renamed.
    placed: Mutex<HashMap<SandboxId, String>>,
}

/// The instance's directories.
pub(super) struct Hierarchies {
    /// By controller; controllers mounted together have the same one.
    bases: BTreeMap<&'static str, PathBuf>,
    /// The distinct ones, and those that only keep machines out of the daemon's own cgroup.
    pub(super) all: Vec<PathBuf>,
}

impl Hierarchies {
    pub(super) fn base(&self, controller: &str) -> Option<&PathBuf> {
        self.bases.get(controller)
    }

    pub(super) fn dir(&self, controller: &str, name: &str) -> Option<PathBuf> {
        self.base(controller).map(|base| base.join(name))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.all.iter().try_for_each(|base| fs::rename(base.join(from), base.join(to)))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        let mut removed = true;
        for base in &self.all {
            removed &= remove_tree(&base.join(name))?;
        }
        Ok(removed)
    }

    /// Kills what is in there, frozen or not.
    pub(super) fn kill(&self, name: &str) -> io::Result<()> {
        for base in &self.all {
            match kill_all(&base.join(name)) {
                Err(error) if !gone(&error) => return Err(error),
                _ => {}
            }
        }
        // A frozen process receives nothing, not even SIGKILL.
        if let Some(dir) = self.dir("freezer", name) {
            thaw_all(&dir);
        }
        Ok(())
    }
}

/// The machine and what its runner may have frozen of its own.
fn thaw_all(dir: &Path) {
    let _ = write(&dir.join("freezer.state"), "THAWED");
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            thaw_all(&entry.path());
        }
    }
}

impl V1 {
    pub(super) fn open(
        mounts: &Mounts,
        instance: &InstanceId,
        ready: usize,
    ) -> Result<Self, EngineError> {
        let mut bases = BTreeMap::new();
        let mut unavailable = Vec::new();
        for (name, control) in CONTROLLERS {
            let base = match mounts.v1_with(name) {
                None => Err(format!("no cgroup hierarchy has the controller {name}")),
                Some(hierarchy) => make_base(&hierarchy.path, instance.as_str())
                    .map_err(|error| format!("{}: {error}", hierarchy.path.display())),
            };
            match (base, control) {
                (Ok(base), _) => drop(bases.insert(name, base)),
                (Err(reason), Some(control)) => unavailable.push(Unavailable { control, reason }),
                (Err(_), None) => {}
            }
        }
        let mut all: Vec<PathBuf> = bases.values().cloned().collect();
        // A service manager ends what it finds in the daemon's cgroup together with the daemon.
        if let Some(named) = mounts.v1_with("name=systemd").filter(|named| named.own != "/")
            && let Ok(base) = make_base(&named.path, instance.as_str())
        {
            all.push(base);
        }
        let unified = mounts.v2.as_ref().filter(|v2| v2.own != "/");
        let unified = unified.and_then(|v2| make_base(&v2.path, instance.as_str()).ok());
        all.sort();
        all.dedup();
        let hierarchies = Hierarchies { bases, all };
        let spares = Spares::new(ready);
        spares.remove_old(&hierarchies);
        let placed = Mutex::new(HashMap::new());
        Ok(Self { hierarchies, unified, unavailable, spares, placed })
    }

    /// The name of the machine's directories at the moment.
    fn name(&self, id: &SandboxId) -> String {
        self.placed().get(id).cloned().unwrap_or_else(|| id.as_str().to_owned())
    }

    fn dir(&self, controller: &str, id: &SandboxId) -> Option<PathBuf> {
        self.hierarchies.dir(controller, &self.name(id))
    }

    fn set_limits(&self, id: &SandboxId, limits: &Limits) -> Result<(), EngineError> {
        if let Some(memory) = self.dir("memory", id) {
            limit_memory(&memory, limits.memory_bytes)?;
        }
        if let Some(cpu) = self.dir("cpu", id) {
            set(&cpu, "cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
            set(&cpu, "cpu.cfs_quota_us", &cpu_quota_us(limits).to_string())?;
        }
        if let Some(pids) = self.dir("pids", id) {
            set(&pids, "pids.max", &limits.pids.to_string())?;
        }
        Ok(())
    }

    fn frozen_state(&self, id: &SandboxId) -> io::Result<Frozen> {
        let Some(dir) = self.dir("freezer", id) else {
            return Ok(Frozen { asked: false, complete: false });
        };
        let asked = read_u64(&dir.join("freezer.self_freezing"))? == 1;
        let complete = asked && fs::read_to_string(dir.join("freezer.state"))?.trim() == "FROZEN";
        Ok(Frozen { asked, complete })
    }

    fn placed(&self) -> MutexGuard<'_, HashMap<SandboxId, String>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Swap counts against the same limit. The order matters: swap's limit is never below memory's.
fn limit_memory(memory: &Path, bytes: u64) -> Result<(), EngineError> {
    let bytes = bytes.to_string();
    let with_swap = memory.join("memory.memsw.limit_in_bytes");
    if with_swap.exists() {
        set(memory, "memory.memsw.limit_in_bytes", "-1")?;
        set(memory, "memory.limit_in_bytes", &bytes)?;
        set(memory, "memory.memsw.limit_in_bytes", &bytes)
    } else {
        set(memory, "memory.limit_in_bytes", &bytes)
    }
}

impl Cgroups for V1 {
    fn describe(&self) -> String {
        let names: Vec<_> = self.hierarchies.bases.keys().copied().collect();
        if names.is_empty() {
            return "no cgroups".to_owned();
        }
        format!("cgroup v1 with {}", names.join(", "))
    }

    fn version(&self) -> CgroupVersion {
        CgroupVersion::V1
    }

    fn can_freeze(&self) -> bool {
        self.hierarchies.base("freezer").is_some()
    }

    fn separate(&self) -> bool {
        !self.hierarchies.all.is_empty()
    }

    fn unavailable(&self) -> Vec<Unavailable> {
        self.unavailable.clone()
    }

    fn prepare(&self, id: &SandboxId) -> Result<Placement, EngineError> {
        let make = "make the machine's cgroups";
        let spare = self.spares.take(&self.hierarchies).map_err(EngineError::io(make))?;
        let Spare { name, tasks, commands, oom_events } = spare;
        self.placed().insert(id.clone(), name);
        let into = self.unified.as_ref().map(|base| {
            let dir = base.join(id.as_str());
            make_dir(&dir).and_then(|()| open_dir(&dir))
        });
        let into = into.transpose().map_err(EngineError::io(make))?;
        Ok(Placement { version: CgroupVersion::V1, tasks, into, commands, oom_events })
    }

    fn limit(&self, id: &SandboxId, limits: &Limits, runner_uid: u32) -> Result<(), EngineError> {
        self.set_limits(id, limits)?;
        if let Some(dir) = self.dir("freezer", id) {
            // Only the directory: the runner may make children, not thaw itself.
            std::os::unix::fs::chown(&dir, Some(runner_uid), Some(runner_uid))
                .map_err(EngineError::io("delegate the machine's cgroup"))?;
        }
        let spare = self.name(id);
        self.hierarchies
            .rename(&spare, id.as_str())
            .map_err(EngineError::io("name the machine's cgroups"))?;
        self.placed().remove(id);
        Ok(())
    }

    fn freeze(&self, id: &SandboxId, frozen: bool) -> Result<(), EngineError> {
        let Some(dir) = self.dir("freezer", id) else {
            return Err(EngineError::Unavailable("no cgroup hierarchy can freeze".into()));
        };
        set(&dir, "freezer.state", if frozen { "FROZEN" } else { "THAWED" })
    }

    fn frozen(&self, id: &SandboxId) -> Result<Frozen, EngineError> {
        self.frozen_state(id).map_err(EngineError::io("read the freezer"))
    }

    fn kill(&self, id: &SandboxId) -> Result<(), EngineError> {
        for name in [self.name(id), id.as_str().to_owned()] {
            self.hierarchies.kill(&name).map_err(EngineError::io("kill the machine"))?;
        }
        Ok(())
    }

    fn remove(&self, id: &SandboxId) -> Result<bool, EngineError> {
        let remove = "remove the machine's cgroups";
        if !self.placed().contains_key(id)
            && self.unified.is_none()
            && self.spares.recycle(&self.hierarchies, id)
        {
            return Ok(true);
        }
        // A rename that failed half-way leaves both names.
        let name = self.name(id);
        let mut removed = self.hierarchies.remove(&name).map_err(EngineError::io(remove))?;
        if name != id.as_str() {
            removed &= self.hierarchies.remove(id.as_str()).map_err(EngineError::io(remove))?;
        }
        if let Some(unified) = &self.unified {
            removed &= remove_tree(&unified.join(id.as_str())).map_err(EngineError::io(remove))?;
        }
        if removed {
            self.placed().remove(id);
        }
        Ok(removed)
    }

    fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        let name = self.name(id);
        let read = |controller: &str, file: &str| match self.hierarchies.dir(controller, &name) {
            Some(dir) => read_u64(&dir.join(file)),
            None => Ok(0),
        };
        let key = |file: &str, key: &str| match self.hierarchies.dir("memory", &name) {
            Some(dir) => read_key(&dir.join(file), key),
            None => Ok(None),
        };
        let gather = || -> io::Result<MachineStats> {
            let cache = key("memory.stat", "total_inactive_file")?.unwrap_or(0);
            Ok(MachineStats {
                memory_bytes: read("memory", "memory.usage_in_bytes")?.saturating_sub(cache),
                memory_peak_bytes: read("memory", "memory.max_usage_in_bytes")?,
                cpu_usage_us: read("cpuacct", "cpuacct.usage")? / 1000,
                pids: read("pids", "pids.current")?,
                disk_bytes: 0,
                oom_kills: key("memory.oom_control", "oom_kill")?.unwrap_or(0),
            })
        };
        gather().map_err(EngineError::io("read the machine's counters"))
    }

    fn enforced(&self, id: &SandboxId) -> Result<Enforced, EngineError> {
        let read = |controller: &str, file: &str| {
            let text = fs::read_to_string(self.dir(controller, id)?.join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let quota = read("cpu", "cpu.cfs_quota_us").zip(read("cpu", "cpu.cfs_period_us"));
        Ok(Enforced {
            memory_bytes: read("memory", "memory.limit_in_bytes"),
            cpu_millis: quota.map(|(quota, period)| quota * 1000 / period.max(1)),
            pids: read("pids", "pids.max"),
        })
    }

    fn refill(&self) {
        self.spares.refill(&self.hierarchies);
    }

    fn close(&self) {
        self.spares.close(&self.hierarchies);
        for base in self.hierarchies.all.iter().chain(&self.unified) {
            // Both fail while somebody else is in there, as they should.
            let _ = fs::remove_dir(base);
            let _ = base.parent().map(fs::remove_dir);
        }
    }
}
