//! A container's first process as the host's `/proc` shows it, where that is ours to see.

use std::fs;
use std::path::PathBuf;

const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "uts"];

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Its cgroups, as the kernel lists them.
    pub(super) cgroups: String,
    status: String,
}

impl Process {
    /// Blocking. The engine's process ids may be another namespace's, so the process is known by
    /// its cgroup, which has the container's id in its name. None where it is out of sight.
    pub(super) fn of(container: &str) -> Option<Self> {
        if container.len() < 32 {
            return None;
        }
        let pids = fs::read_dir("/proc").ok()?.flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.into_iter().find_map(|pid| {
            let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
            if !cgroups.contains(container) {
                return None;
            }
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let process = Self { pid, cgroups, status };
            // In its own namespace it is the first.
            let inside = process.field("NSpid:").split_whitespace().next_back()?.to_owned();
            (inside == "1").then_some(process)
        })
    }

    fn field(&self, key: &str) -> &str {
        let mut lines = self.status.lines();
        lines.find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim()
    }

    fn number(&self, key: &str, radix: u32) -> Option<u64> {
        let first = self.field(key).split_whitespace().next()?;
        u64::from_str_radix(first, radix).ok()
    }

    pub(super) fn user(&self) -> Option<u64> {
        self.number("Uid:", 10)
    }

    pub(super) fn bounding_set(&self) -> Option<u64> {
        self.number("CapBnd:", 16)
    }

    pub(super) fn no_new_privileges(&self) -> bool {
        self.number("NoNewPrivs:", 10) == Some(1)
    }

    pub(super) fn filters_calls(&self) -> bool {
        self.number("Seccomp:", 10) == Some(2)
    }

    /// Namespaces that it shares with us, but for the user's, which is a control of its own.
    pub(super) fn shared_namespaces(&self) -> Vec<&'static str> {
        let link = |who: &str, name: &str| fs::read_link(format!("/proc/{who}/ns/{name}")).ok();
        let pid = self.pid.to_string();
        NAMESPACES.into_iter().filter(|name| link(&pid, name) == link("self", name)).collect()
    }

    pub(super) fn program(&self) -> std::io::Result<Vec<u8>> {
        fs::read(format!("/proc/{}/exe", self.pid))
    }

    /// Its cgroup of a controller, where the usual mounts are.
    pub(super) fn cgroup(&self, controller: &str) -> Option<PathBuf> {
        let mut lines = self.cgroups.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        });
        lines.find_map(|(controllers, path)| {
            let path = path.trim_start_matches('/');
            let place = match controllers {
                "" => PathBuf::from("/sys/fs/cgroup").join(path),
                some if some.split(',').any(|name| name == controller) => {
                    PathBuf::from("/sys/fs/cgroup").join(controller).join(path)
                }
                _ => return None,
            };
            // A mixed host has an empty v2 hierarchy beside the v1 ones.
            place
                .join(format!("{controller}{}", marker(controllers, controller)))
                .exists()
                .then_some(place)
        })
    }
}

/// The rest of a file's name that is there only where the controller is.
fn marker(controllers: &str, controller: &str) -> &'static str {
    match (controllers, controller) {
        ("", _) => ".max",
        (_, "memory") => ".limit_in_bytes",
        (_, "cpu") => ".cfs_quota_us",
        _ => ".max",
    }
}
