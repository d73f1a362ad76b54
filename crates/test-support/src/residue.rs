//! What a daemon left on the host: processes, mounts, cgroups, network, loop devices, files.
//!
//! Everything is found through the data directory and the instance id kept in it, so daemons of
//! other tests do not disturb the answer.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The kernel removes links, loop devices and cgroups in its own time after their last user.
const SETTLING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// One line per thing that should not be there any more, and does not go by itself.
pub fn of(data_dir: &Path) -> Vec<String> {
    let deadline = Instant::now() + SETTLING;
    loop {
        let left = now(data_dir);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(PAUSE);
    }
}

fn now(data_dir: &Path) -> Vec<String> {
    let mut left = Vec::new();
    left.extend(processes(data_dir));
    left.extend(mounts(data_dir));
    left.extend(loop_devices(data_dir));
    left.extend(machine_dirs(data_dir));
    if let Ok(instance) = fs::read_to_string(data_dir.join("instance")) {
        let instance = instance.trim();
        left.extend(cgroups(instance));
        left.extend(nft_tables(instance));
        left.extend(links(instance));
        left.extend(host_claims(instance));
    }
    left
}

/// In whatever cgroup: started for this directory, or with something of it open. A spawner has
/// its daemon's environment and its log; of a machine's first process only the latter may show.
fn processes(data_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        (pid != std::process::id()).then_some((pid, entry.path()))
    });
    let tied = others.filter_map(|(pid, process)| {
        let tie = tie(&process, data_dir)?;
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        Some(format!("process: {pid} {} by its {tie}", name.trim()))
    });
    tied.collect()
}

/// What ties a process to the directory.
fn tie(process: &Path, data_dir: &Path) -> Option<String> {
    let leads_there = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(data_dir));
    let link = ["exe", "cwd", "root"].into_iter().find(|name| leads_there(&process.join(name)));
    let text =
        || ["cmdline", "environ"].into_iter().find(|name| names(&process.join(name), data_dir));
    let file = || {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files
            .map(|entry| entry.path())
            .find(|link| leads_there(link))
            .and_then(|l| fs::read_link(l).ok())
    };
    let named = link.or_else(text).map(str::to_owned);
    named.or_else(|| file().map(|path| format!("open file {}", path.display())))
}

/// Whether a word of a process's arguments or environment names the directory.
fn names(file: &Path, data_dir: &Path) -> bool {
    let words = fs::read(file).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| {
        let value = word.iter().position(|byte| *byte == b'=').map_or(word, |at| &word[at + 1..]);
        Path::new(OsStr::from_bytes(value)).starts_with(data_dir)
    })
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

/// An instance is `i` and eight characters; its links are `sbk`, these, and the slot's number.
fn links(instance: &str) -> Vec<String> {
    let prefix = format!("sbk{}", instance.strip_prefix('i').unwrap_or(instance));
    let links = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = links.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).map(|name| format!("link: {name}")).collect()
}

/// Ranges of user ids that the instance still claims, and its word that it runs.
fn host_claims(instance: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/sandbank").into_iter().flatten().flatten();
    let claims = entries.map(|entry| entry.path()).filter(|path| {
        let named = path.file_name().and_then(OsStr::to_str).is_some_and(|n| n.ends_with(instance));
        named || fs::read_link(path).is_ok_and(|owner| owner == Path::new(instance))
    });
    claims.map(|path| format!("claim: {}", path.display())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_process_is_found_by_what_ties_it_to_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let beside = tempfile::tempdir().unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let sleeping = || {
            let mut command = Command::new("sleep");
            command.arg("60").current_dir("/").stdout(std::process::Stdio::null());
            command
        };
        let mut kinds = [sleeping(), sleeping(), sleeping(), sleeping()];
        kinds[0].current_dir(dir.path());
        kinds[1].env("SANDBANK_DATA_DIR", dir.path());
        kinds[2].stdout(log);
        kinds[3].env("SANDBANK_DATA_DIR", beside.path());
        let mut children = kinds.map(|mut command| command.spawn().unwrap());
        let found = processes(dir.path());
        for (child, tied) in children.iter_mut().zip([true, true, true, false]) {
            let line = format!("process: {} ", child.id());
            assert_eq!(found.iter().any(|f| f.starts_with(&line)), tied, "{line}: {found:?}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(processes(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn a_link_is_found_by_the_instance_in_its_name() {
        if crate::skip_unless_root() {
            return;
        }
        let ip = |words: &[&str]| Command::new("ip").args(words).status().unwrap().success();
        let made = ip(&["link", "add", "sbkresidue07", "type", "veth", "peer", "residue-peer"]);
        assert!(made, "no link can be made");
        let found = (links("iresidue0"), links("iresidue1"));
        assert!(ip(&["link", "del", "sbkresidue07"]));
        assert_eq!(found, (vec!["link: sbkresidue07".to_owned()], Vec::new()));
    }
}
