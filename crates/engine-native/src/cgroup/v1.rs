//! cgroup v1: memory, cpu, cpuacct, pids and freezer, each in its own hierarchy or together.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbank_engine::{Control, EngineError, InstanceId, Limits, MachineStats, SandboxId};
use sandbank_protocol::CgroupVersion;

use super::files::{gone, kill_all, open_dir, processes, read_key, read_u64, remove_tree, set, write};
use super::mounts::{Mounts, make_base};
use super::{CPU_PERIOD_US, Cgroups, Frozen, Placement, Unavailable, cpu_quota_us};

/// Directories made ahead are named so; a sandbox id never is.
const SPARE_PREFIX: &str = "spare-";

/// A directory that still has more than this charged to it is not used again: lowering the next
/// machine's limit would first have to reclaim it.
const RECYCLE_BELOW_BYTES: u64 = 32 << 20;

/// What a machine needs; name, controller, the control it enforces.
const CONTROLLERS: [(&str, Option<Control>); 5] = [
    ("memory", Some(Control::MemoryLimit)),
    ("cpu", Some(Control::CpuLimit)),
    ("pids", Some(Control::PidsLimit)),
    ("cpuacct", None),
    ("freezer", None),
];

pub(super) struct V1 {
    /// Instance directories by controller. Controllers mounted together have the same one.
    bases: BTreeMap<&'static str, PathBuf>,
    /// The distinct ones, and those that only keep machines out of the daemon's own cgroup.
    all: Vec<PathBuf>,
    /// The v2 hierarchy of a hybrid host, when the daemon is not at its root.
    unified: Option<PathBuf>,
    unavailable: Vec<Unavailable>,
    spares: Mutex<Vec<Spare>>,
    ready: usize,
    next_spare: AtomicU64,
}

/// A machine's directories before they belong to one.
struct Spare {
    name: String,
    tasks: Vec<OwnedFd>,
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
        let v1 = Self {
            bases,
            all,
            unified,
            unavailable,
            spares: Mutex::new(Vec::new()),
            ready,
            next_spare: AtomicU64::new(0),
        };
        v1.remove_old_spares();
        Ok(v1)
    }

    fn base(&self, controller: &str) -> Option<&PathBuf> {
        self.bases.get(controller)
    }

    /// What an earlier daemon made ahead.
    fn remove_old_spares(&self) {
        for base in &self.all {
            for entry in fs::read_dir(base).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(SPARE_PREFIX) {
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }

    fn make_spare(&self) -> io::Result<Spare> {
        let number = self.next_spare.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SPARE_PREFIX}{number}");
        for base in &self.all {
            fs::create_dir(base.join(&name))?;
        }
        let tasks = self.open_tasks(&name)?;
        Ok(Spare { name, tasks })
    }

    fn open_tasks(&self, name: &str) -> io::Result<Vec<OwnedFd>> {
        let open = |base: &PathBuf| {
            Ok(OpenOptions::new().write(true).open(base.join(name).join("tasks"))?.into())
        };
        self.all.iter().map(open).collect()
    }

    /// Directories for the machine, with their `tasks`. Spares that somebody else removed are
    /// passed over.
    fn take_spare(&self, id: &SandboxId) -> io::Result<Vec<OwnedFd>> {
        loop {
            let spare = self.spares().pop();
            let Some(spare) = spare else { break };
            if self.rename(&spare.name, id.as_str()).is_ok() {
                return Ok(spare.tasks);
            }
            for base in &self.all {
                let _ = remove_tree(&base.join(&spare.name));
                let _ = remove_tree(&base.join(id.as_str()));
            }
        }
        let spare = self.make_spare()?;
        self.rename(&spare.name, id.as_str())?;
        Ok(spare.tasks)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.all.iter().try_for_each(|base| fs::rename(base.join(from), base.join(to)))
    }

    fn limit(&self, id: &SandboxId, limits: &Limits) -> Result<(), EngineError> {
        if let Some(memory) = self.base("memory").map(|base| base.join(id.as_str())) {
            limit_memory(&memory, limits.memory_bytes)?;
        }
        if let Some(cpu) = self.base("cpu").map(|base| base.join(id.as_str())) {
            set(&cpu, "cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
            set(&cpu, "cpu.cfs_quota_us", &cpu_quota_us(limits).to_string())?;
        }
        if let Some(pids) = self.base("pids").map(|base| base.join(id.as_str())) {
            set(&pids, "pids.max", &limits.pids.to_string())?;
        }
        Ok(())
    }

    /// Whether nothing of the last machine can be seen in the directories any more.
    fn is_clean(&self, name: &str) -> bool {
        let childless = |dir: &Path| {
            fs::read_dir(dir).is_ok_and(|mut entries| {
                entries.all(|e| e.is_ok_and(|e| e.file_type().is_ok_and(|kind| kind.is_file())))
            })
        };
        let unused = self.all.iter().all(|base| {
            let dir = base.join(name);
            childless(&dir) && fs::read(dir.join("cgroup.procs")).is_ok_and(|procs| procs.is_empty())
        });
        let reset = |controller: &str, file: &str, value: &str| {
            self.base(controller)
                .is_none_or(|base| write(&base.join(name).join(file), value).is_ok())
        };
        let light = self.base("memory").is_none_or(|base| {
            let memory = base.join(name);
            let oom_kills = read_key(&memory.join("memory.oom_control"), "oom_kill");
            let charged = read_u64(&memory.join("memory.usage_in_bytes"));
            matches!(oom_kills, Ok(Some(0))) && charged.is_ok_and(|b| b < RECYCLE_BELOW_BYTES)
        });
        unused
            && light
            && reset("memory", "memory.max_usage_in_bytes", "0")
            && reset("cpuacct", "cpuacct.usage", "0")
    }

    /// Keeps a dead machine's directories for the next one: removed memory cgroups linger in the
    /// kernel as long as a page that they were charged for.
    fn recycle(&self, id: &SandboxId) -> bool {
        if self.unified.is_some() || self.spares().len() >= self.ready || !self.is_clean(id.as_str())
        {
            return false;
        }
        let owned_by_root = |base: &PathBuf| {
            std::os::unix::fs::chown(base.join(id.as_str()), Some(0), Some(0)).is_ok()
        };
        let number = self.next_spare.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SPARE_PREFIX}{number}");
        let tasks = self.base("freezer").is_none_or(owned_by_root).then(|| {
            self.rename(id.as_str(), &name)?;
            self.open_tasks(&name)
        });
        match tasks {
            Some(Ok(tasks)) => {
                self.spares().push(Spare { name, tasks });
                true
            }
            _ => {
                self.all.iter().for_each(|base| drop(remove_tree(&base.join(&name))));
                false
            }
        }
    }

    fn frozen_state(&self, id: &SandboxId) -> io::Result<Frozen> {
        let Some(base) = self.base("freezer") else {
            return Ok(Frozen { asked: false, complete: false });
        };
        let dir = base.join(id.as_str());
        let asked = read_u64(&dir.join("freezer.self_freezing"))? == 1;
        let complete = asked && fs::read_to_string(dir.join("freezer.state"))?.trim() == "FROZEN";
        Ok(Frozen { asked, complete })
    }

    fn spares(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The machine and what its runner may have frozen of its own.
fn thaw_all(dir: &Path) {
    let _ = write(&dir.join("freezer.state"), "THAWED");
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            thaw_all(&entry.path());
        }
    }
}

impl Cgroups for V1 {
    fn describe(&self) -> String {
        let names: Vec<_> = self.bases.keys().copied().collect();
        format!("cgroup v1 with {}", names.join(", "))
    }

    fn can_freeze(&self) -> bool {
        self.base("freezer").is_some()
    }

    fn unavailable(&self) -> Vec<Unavailable> {
        self.unavailable.clone()
    }

    fn prepare(
        &self,
        id: &SandboxId,
        limits: &Limits,
        runner_uid: u32,
    ) -> Result<Placement, EngineError> {
        let make = "make the machine's cgroups";
        let tasks = self.take_spare(id).map_err(EngineError::io(make))?;
        self.limit(id, limits)?;
        let commands = match self.base("freezer").map(|base| base.join(id.as_str())) {
            Some(dir) => {
                // Only the directory: the runner may make children, not thaw itself.
                std::os::unix::fs::chown(&dir, Some(runner_uid), Some(runner_uid))
                    .and_then(|()| open_dir(&dir).map(Some))
                    .map_err(EngineError::io(make))?
            }
            None => None,
        };
        let oom_control = self.base("memory").map(|base| base.join(id.as_str()));
        let oom_events = oom_control
            .map(|dir| File::open(dir.join("memory.oom_control")).map(OwnedFd::from))
            .transpose()
            .map_err(EngineError::io(make))?;
        let into = self.unified.as_ref().map(|base| {
            let dir = base.join(id.as_str());
            super::files::make_dir(&dir).and_then(|()| open_dir(&dir))
        });
        let into = into.transpose().map_err(EngineError::io(make))?;
        Ok(Placement { version: CgroupVersion::V1, tasks, into, commands, oom_events })
    }

    fn freeze(&self, id: &SandboxId, frozen: bool) -> Result<(), EngineError> {
        let Some(base) = self.base("freezer") else {
            return Err(EngineError::Unavailable("no cgroup hierarchy can freeze".into()));
        };
        let state = if frozen { "FROZEN" } else { "THAWED" };
        set(&base.join(id.as_str()), "freezer.state", state)
    }

    fn frozen(&self, id: &SandboxId) -> Result<Frozen, EngineError> {
        self.frozen_state(id).map_err(EngineError::io("read the freezer"))
    }

    fn kill(&self, id: &SandboxId) -> Result<(), EngineError> {
        for base in &self.all {
            match kill_all(&base.join(id.as_str())) {
                Err(error) if !gone(&error) => return Err(EngineError::io("kill")(error)),
                _ => {}
            }
        }
        // A frozen process receives nothing, not even SIGKILL.
        if let Some(base) = self.base("freezer") {
            thaw_all(&base.join(id.as_str()));
        }
        Ok(())
    }

    fn populated(&self, id: &SandboxId) -> Result<bool, EngineError> {
        let mut pids = Vec::new();
        for base in &self.all {
            processes(&base.join(id.as_str()), &mut pids)
                .map_err(EngineError::io("read the machine's processes"))?;
        }
        Ok(!pids.is_empty())
    }

    fn remove(&self, id: &SandboxId) -> Result<bool, EngineError> {
        let remove = "remove the machine's cgroups";
        if let Some(base) = self.base("freezer") {
            // The runner's own children, so that the directory can be recycled.
            let dir = base.join(id.as_str());
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    remove_tree(&entry.path()).map_err(EngineError::io(remove))?;
                }
            }
        }
        let present = self.all.iter().any(|base| base.join(id.as_str()).exists());
        if present && self.recycle(id) {
            return Ok(true);
        }
        let mut removed = true;
        for base in self.all.iter().chain(&self.unified) {
            removed &= remove_tree(&base.join(id.as_str())).map_err(EngineError::io(remove))?;
        }
        Ok(removed)
    }

    fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        let read = |controller: &str, file: &str| match self.base(controller) {
            Some(base) => read_u64(&base.join(id.as_str()).join(file)),
            None => Ok(0),
        };
        let key = |file: &str, key: &str| match self.base("memory") {
            Some(base) => read_key(&base.join(id.as_str()).join(file), key),
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

    fn list(&self) -> Result<Vec<SandboxId>, EngineError> {
        let names = self.all.iter().flat_map(fs::read_dir).flatten().flatten();
        let mut ids: Vec<SandboxId> =
            names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn refill(&self) {
        while self.spares().len() < self.ready {
            match self.make_spare() {
                Ok(spare) => self.spares().push(spare),
                Err(error) => {
                    tracing::warn!(%error, "cannot make cgroups ahead");
                    return;
                }
            }
        }
    }

    fn close(&self) {
        let spares = std::mem::take(&mut *self.spares());
        for base in self.all.iter().chain(&self.unified) {
            for spare in &spares {
                let _ = fs::remove_dir(base.join(&spare.name));
            }
            // Both fail while somebody else is in there, as they should.
            let _ = fs::remove_dir(base);
            let _ = base.parent().map(fs::remove_dir);
        }
    }
}
