//! cgroup v2: one directory per machine, with every controller.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use sandbank_engine::{Control, EngineError, InstanceId, Limits, MachineStats, SandboxId};
use sandbank_protocol::CgroupVersion;

use super::files::{
    gone, kill_all, open_detached, open_dir, read_key, read_u64, remove_tree, set, write,
};
use super::mounts::{Hierarchy, Mounts, make_base};
use super::{CPU_PERIOD_US, Cgroups, Enforced, Frozen, Placement, Unavailable, cpu_quota_us};

const CONTROLLERS: [(&str, Control); 3] =
    [("memory", Control::MemoryLimit), ("cpu", Control::CpuLimit), ("pids", Control::PidsLimit)];

/// Cgroups that a runner may make for its commands; one more is refused by the kernel.
const MAX_COMMAND_CGROUPS: &str = "10000";

pub(super) struct V2 {
    base: PathBuf,
    unavailable: Vec<Unavailable>,
}

impl V2 {
    /// At the root of the hierarchy, out of reach of the daemon's service manager; or, where the
    /// daemon may not write there, in the part that was delegated to it.
    pub(super) fn open(mounts: &Mounts, instance: &InstanceId) -> Result<Self, EngineError> {
        let v2 = mounts.v2.as_ref().ok_or_else(|| EngineError::ControlUnavailable {
            control: Control::ResourceLimits,
            reason: "no cgroup2 file system is mounted".into(),
        })?;
        let at_root = Self::at(&v2.path, &v2.path, instance);
        // Only the root of the host lacks this file; a container's root is a cgroup like others.
        let is_host_root = !v2.path.join("cgroup.type").exists();
        let whole = at_root.as_ref().is_ok_and(|found| found.unavailable.is_empty());
        if whole || (is_host_root && v2.own == "/") {
            return at_root;
        }
        let delegated = Self::delegated(v2, instance);
        match (at_root, delegated) {
            (Ok(root), Ok(own)) if root.unavailable.len() <= own.unavailable.len() => Ok(root),
            (root, Err(_)) => root,
            (_, own) => own,
        }
    }

    /// A cgroup that hands controllers to its children may hold no process, so the daemon moves
    /// into a child of its own first.
    fn delegated(v2: &Hierarchy, instance: &InstanceId) -> Result<Self, EngineError> {
        let own = v2.path.join(v2.own.trim_start_matches('/'));
        let place = "use the delegated cgroup";
        let daemon = own.join("daemon");
        super::files::make_dir(&daemon).map_err(EngineError::io(place))?;
        write(&daemon.join("cgroup.procs"), "0").map_err(EngineError::io(place))?;
        Self::at(&own, &own, instance)
    }

    fn at(top: &Path, parent: &Path, instance: &InstanceId) -> Result<Self, EngineError> {
        let base = make_base(parent, instance.as_str())
            .map_err(EngineError::io("make the cgroup of all machines"))?;
        let mut way: Vec<&Path> = base.ancestors().take_while(|dir| dir.starts_with(top)).collect();
        way.reverse();
        for dir in way {
            for (name, _) in CONTROLLERS {
                // Whether it worked is read at the end of the way, where it counts.
                let _ = write(&dir.join("cgroup.subtree_control"), &format!("+{name}"));
            }
        }
        let enabled = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
        let missing = CONTROLLERS
            .iter()
            .filter(|(name, _)| !enabled.split_whitespace().any(|word| word == *name));
        let unavailable = missing
            .map(|(name, control)| Unavailable {
                control: *control,
                reason: format!("the controller {name} is not enabled below {}", top.display()),
            })
            .collect();
        Ok(Self { base, unavailable })
    }

    fn dir(&self, id: &SandboxId) -> PathBuf {
        self.base.join(id.as_str())
    }

    fn has(&self, control: Control) -> bool {
        !self.unavailable.iter().any(|missing| missing.control == control)
    }

    fn set_limits(&self, dir: &Path, limits: &Limits) -> Result<(), EngineError> {
        if self.has(Control::MemoryLimit) {
            set(dir, "memory.max", &limits.memory_bytes.to_string())?;
            if dir.join("memory.swap.max").exists() {
                set(dir, "memory.swap.max", "0")?;
            }
        }
        if self.has(Control::CpuLimit) {
            set(dir, "cpu.max", &format!("{} {CPU_PERIOD_US}", cpu_quota_us(limits)))?;
        }
        if self.has(Control::PidsLimit) {
            set(dir, "pids.max", &limits.pids.to_string())?;
        }
        set(dir, "cgroup.max.descendants", MAX_COMMAND_CGROUPS)
    }
}

/// What the runner needs to make children for its commands and to move processes into them. The
/// limits themselves stay root's.
fn delegate(dir: &Path, runner_uid: u32) -> io::Result<()> {
    for file in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
        std::os::unix::fs::chown(dir.join(file), Some(runner_uid), Some(runner_uid))?;
    }
    Ok(())
}

impl Cgroups for V2 {
    fn describe(&self) -> String {
        format!("cgroup v2 at {}", self.base.display())
    }

    fn version(&self) -> CgroupVersion {
        CgroupVersion::V2
    }

    fn can_freeze(&self) -> bool {
        true
    }

    fn separate(&self) -> bool {
        true
    }

    fn unavailable(&self) -> Vec<Unavailable> {
        self.unavailable.clone()
    }

    fn prepare(&self, id: &SandboxId) -> Result<Placement, EngineError> {
        let make = "make the machine's cgroup";
        let dir = self.dir(id);
        fs::create_dir(&dir).map_err(EngineError::io(make))?;
        let oom_events = match File::open(dir.join("memory.events")) {
            Ok(file) => Some(OwnedFd::from(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(EngineError::io(make)(error)),
        };
        Ok(Placement {
            version: CgroupVersion::V2,
            tasks: Vec::new(),
            into: Some(open_dir(&dir).map_err(EngineError::io(make))?),
            commands: Some(open_detached(&dir).map_err(EngineError::io(make))?),
            oom_events,
        })
    }

    fn limit(&self, id: &SandboxId, limits: &Limits, runner_uid: u32) -> Result<(), EngineError> {
        let dir = self.dir(id);
        self.set_limits(&dir, limits)?;
        delegate(&dir, runner_uid).map_err(EngineError::io("delegate the machine's cgroup"))
    }

    fn freeze(&self, id: &SandboxId, frozen: bool) -> Result<(), EngineError> {
        set(&self.dir(id), "cgroup.freeze", if frozen { "1" } else { "0" })
    }

    fn frozen(&self, id: &SandboxId) -> Result<Frozen, EngineError> {
        let dir = self.dir(id);
        let read = || -> io::Result<Frozen> {
            let asked = read_u64(&dir.join("cgroup.freeze"))? == 1;
            let complete = read_key(&dir.join("cgroup.events"), "frozen")? == Some(1);
            Ok(Frozen { asked, complete })
        };
        read().map_err(EngineError::io("read the freezer"))
    }

    fn kill(&self, id: &SandboxId) -> Result<(), EngineError> {
        let dir = self.dir(id);
        let killed = match write(&dir.join("cgroup.kill"), "1") {
            // Kernels before 5.14 lack the file, not the cgroup.
            Err(error) if error.kind() == io::ErrorKind::NotFound => kill_all(&dir),
            other => other,
        };
        match killed {
            Err(error) if !gone(&error) => Err(EngineError::io("kill the machine")(error)),
            _ => Ok(()),
        }
    }

    fn remove(&self, id: &SandboxId) -> Result<bool, EngineError> {
        remove_tree(&self.dir(id)).map_err(EngineError::io("remove the machine's cgroup"))
    }

    fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        let dir = self.dir(id);
        // A counter whose controller or kernel is missing reads as zero.
        let number = |file: &str| match read_u64(&dir.join(file)) {
            Err(error) if gone(&error) => Ok(0),
            other => other,
        };
        let key = |file: &str, key: &str| match read_key(&dir.join(file), key) {
            Err(error) if gone(&error) => Ok(0),
            other => other.map(Option::unwrap_or_default),
        };
        let gather = || -> io::Result<MachineStats> {
            fs::metadata(&dir)?;
            let cache = key("memory.stat", "inactive_file")?;
            Ok(MachineStats {
                memory_bytes: number("memory.current")?.saturating_sub(cache),
                memory_peak_bytes: number("memory.peak")?,
                cpu_usage_us: key("cpu.stat", "usage_usec")?,
                pids: number("pids.current")?,
                disk_bytes: 0,
                oom_kills: key("memory.events", "oom_kill")?,
            })
        };
        gather().map_err(EngineError::io("read the machine's counters"))
    }

    fn enforced(&self, id: &SandboxId) -> Result<Enforced, EngineError> {
        let read = |file: &str| fs::read_to_string(self.dir(id).join(file)).unwrap_or_default();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let cpu = read("cpu.max");
        let mut cpu = cpu.split_whitespace().map(number);
        let quota = cpu.next().flatten().zip(cpu.next().flatten());
        Ok(Enforced {
            memory_bytes: number(&read("memory.max")),
            cpu_millis: quota.map(|(quota, period)| quota * 1000 / period.max(1)),
            pids: number(&read("pids.max")),
        })
    }

    fn refill(&self) {}

    fn close(&self) {
        // Both fail while somebody else is in there, as they should.
        let _ = fs::remove_dir(&self.base);
        let _ = self.base.parent().map(fs::remove_dir);
    }
}
