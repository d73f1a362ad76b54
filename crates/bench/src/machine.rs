//! What the run was made on. Never a host name, a user name or a path.

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use serde::Serialize;

use crate::memory;

#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub virtual_machine: bool,
    pub memory_gb: f64,
    pub system: String,
    pub kernel: String,
    pub cgroup: String,
    /// File system below the data directory.
    pub file_system: String,
    /// What workspaces live on, as far as it can be told.
    pub storage: String,
    /// One-minute load average before the run, which says how quiet the machine was.
    pub load_before: f64,
}

impl Machine {
    /// To be called while the daemon serves from `data_dir`.
    pub(crate) fn describe(data_dir: &Path, load_before: f64) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let mounts = read("/proc/self/mountinfo");
        let file_system = file_system(&mounts, data_dir);
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: available_parallelism().map_or(1, Into::into),
            virtual_machine: field(&cpuinfo, "flags").is_some_and(|f| f.contains(" hypervisor")),
            memory_gb: memory::total_mb().unwrap_or_default() / 1e3,
            system: system(&read("/etc/os-release")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cgroup: cgroup(&mounts).to_owned(),
            storage: storage(&mounts, data_dir, &file_system),
            file_system,
            load_before,
        }
    }
}

pub(crate) fn load_average() -> f64 {
    let text = read("/proc/loadavg");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// `name : value` of the first such line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn system(os_release: &str) -> String {
    let pretty = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    pretty.unwrap_or("Linux").trim_matches('"').to_owned()
}

/// Mount point and file system type of each line of mountinfo, in mount order.
fn mount_points(mountinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        Some((left.split(' ').nth(4)?, right.split(' ').next()?))
    })
}

fn cgroup(mountinfo: &str) -> &'static str {
    let has = |kind| mount_points(mountinfo).any(|(_, found)| found == kind);
    let unified = mount_points(mountinfo).any(|found| found == ("/sys/fs/cgroup", "cgroup2"));
    match (unified, has("cgroup"), has("cgroup2")) {
        (true, ..) => "v2",
        (false, true, true) => "v1, hybrid",
        (false, true, false) => "v1",
        (false, false, true) => "v2, at an unusual place",
        (false, false, false) => "none",
    }
}

fn file_system(mountinfo: &str, path: &Path) -> String {
    let below = mount_points(mountinfo).filter(|(point, _)| path.starts_with(point));
    // The last of the longest ones is on top.
    let deepest = below.max_by_key(|(point, _)| point.len());
    deepest.map_or("unknown", |(_, kind)| kind).to_owned()
}

fn storage(mountinfo: &str, data_dir: &Path, file_system: &str) -> String {
    let inner = mount_points(mountinfo)
        .filter(|(point, _)| Path::new(point) != data_dir && Path::new(point).starts_with(data_dir))
        .find(|(_, kind)| *kind == "btrfs");
    match (inner, file_system) {
        (Some(_), _) => format!("btrfs in a pool file on {file_system}"),
        (None, "btrfs") => "btrfs".to_owned(),
        (None, _) => format!("plain directories on {file_system}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
40 21 7:0 / /tmp/data/pool rw shared:1 - btrfs /dev/loop0 rw
";

    #[test]
    fn cgroup_versions_are_told_apart() {
        assert_eq!(cgroup(HYBRID), "v1, hybrid");
        assert_eq!(cgroup("30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"), "v2");
        assert_eq!(cgroup("31 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw"), "v1");
        assert_eq!(cgroup(""), "none");
    }

    #[test]
    fn storage_is_described_without_paths() {
        let data = Path::new("/tmp/data");
        assert_eq!(file_system(HYBRID, data), "ext4");
        assert_eq!(storage(HYBRID, data, "ext4"), "btrfs in a pool file on ext4");
        assert_eq!(storage(HYBRID, Path::new("/srv"), "ext4"), "plain directories on ext4");
        assert_eq!(storage("", data, "btrfs"), "btrfs");
    }

    #[test]
    fn the_cpu_is_the_first_one_named() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: other\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(system("NAME=x\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
    }
}
