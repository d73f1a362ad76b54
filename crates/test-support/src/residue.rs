//! What a daemon left on the host: processes, mounts, cgroups, network, loop devices, files.
//!
//! Everything is found through the data directory and the instance id kept in it, so daemons of
//! other tests do not disturb the answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line per thing that should not be there any more.
pub fn of(data_dir: &Path) -> Vec<String> {
    let mut left = Vec::new();
    left.extend(mounts(data_dir));
    left.extend(loop_devices(data_dir));
    left.extend(machine_dirs(data_dir));
    if let Ok(instance) = fs::read_to_string(data_dir.join("instance")) {
        let instance = instance.trim();
        left.extend(cgroups(instance));
        left.extend(nft_tables(instance));
    }
    left
}

fn mounts(data_dir: &Path) -> Vec<String> {
    let needle = data_dir.display().to_string();
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter(|l| l.contains(&needle)).map(|l| format!("mount: {l}")).collect()
}

fn loop_devices(data_dir: &Path) -> Vec<String> {
    let blocks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backing = |entry: fs::DirEntry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let ours = Path::new(file.trim()).starts_with(data_dir);
        ours.then(|| format!("loop device: {} on {}", entry.path().display(), file.trim()))
    };
    blocks.filter_map(backing).collect()
}

fn machine_dirs(data_dir: &Path) -> Vec<String> {
    let dirs = fs::read_dir(data_dir.join("machines")).into_iter().flatten().flatten();
    let dirs = dirs.map(|entry| entry.path()).filter(|path| path.is_dir());
    dirs.map(|path| format!("machine directory: {}", path.display())).collect()
}

/// Machines' cgroups, with the processes still in them. Pooled empty ones go with the daemon.
fn cgroups(instance: &str) -> Vec<String> {
    let mut roots = vec![PathBuf::from("/sys/fs/cgroup")];
    roots.extend(fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|e| e.path()));
    let mut left = Vec::new();
    for root in roots {
        let dir = root.join("sandbank").join(instance);
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                let tasks = fs::read_to_string(entry.path().join("cgroup.procs"));
                let tasks = tasks.unwrap_or_default().split_whitespace().count();
                left.push(format!("cgroup: {} ({tasks} processes)", entry.path().display()));
            }
        }
    }
    left
}

fn nft_tables(instance: &str) -> Vec<String> {
    let Ok(listing) = Command::new("nft").args(["list", "tables"]).output() else {
        return Vec::new();
    };
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let ours = |line: &&str| line.contains(instance);
    listing.lines().filter(ours).map(|line| format!("nft: {line}")).collect()
}
