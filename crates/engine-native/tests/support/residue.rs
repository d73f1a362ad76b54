//! What machines may leave on the host: nothing.

use std::fs;
use std::path::Path;

use sandbank_engine_native::NativeSettings;

use super::wait_for;

/// Mounts, cgroups of every hierarchy, processes and files of this instance.
pub async fn assert_none(settings: &NativeSettings) {
    wait_for("the machines' traces are gone", async || found(settings).is_empty()).await;
}

pub fn found(settings: &NativeSettings) -> Vec<String> {
    let mut found = mounts(&settings.data_dir);
    found.extend(cgroups(settings.instance.as_str()));
    let machines = settings.data_dir.join("machines");
    for entry in fs::read_dir(machines).into_iter().flatten().flatten() {
        if entry.file_name() != ".lock" {
            found.push(format!("directory {}", entry.path().display()));
        }
    }
    found
}

pub fn mounts(below: &Path) -> Vec<String> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let below = below.to_str().unwrap();
    mountinfo.lines().filter(|line| line.contains(below)).map(str::to_owned).collect()
}

/// Directories named so anywhere below the cgroup mounts.
pub fn cgroups(name: &str) -> Vec<String> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mountinfo.lines().filter(|line| line.contains(" - cgroup"));
    let mut found = Vec::new();
    for path in mounts.filter_map(|line| line.split(' ').nth(4)) {
        collect(Path::new(path), name, 4, &mut found);
    }
    found
}

fn collect(dir: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_str() == Some(name) {
            found.push(format!("cgroup {}", entry.path().display()));
        } else if depth > 0 {
            collect(&entry.path(), name, depth - 1, found);
        }
    }
}

/// Processes of the host whose user id is in this range.
pub fn processes_of_range(uid_base: u32) -> Vec<i32> {
    use std::os::unix::fs::MetadataExt;
    let range = uid_base..uid_base + 0x1_0000;
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let uid: u32 = uid.split_whitespace().next()?.parse().ok()?;
        let _ = entry.metadata().ok()?.uid();
        range.contains(&uid).then_some(pid)
    });
    processes.collect()
}
