//! Directories of v1 hierarchies that no machine has yet, or no more.
//!
//! They are made ahead because a memory cgroup alone takes longer than the rest of a machine's
//! mounts, and used again because removed memory cgroups linger in the kernel for as long as any
//! page that was charged to them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sandbank_engine::SandboxId;

use super::files::{open_detached, read_key, read_u64, remove_tree, write};
use super::v1::Hierarchies;
use crate::limits::{KERNEL_POLL, STATUS_DEADLINE};

/// A sandbox id never looks so.
const PREFIX: &str = "spare-";

/// A directory that still has more than this charged to it is not used again: lowering the next
/// machine's limit would first have to reclaim it.
const RECYCLE_BELOW_BYTES: u64 = 32 << 20;

/// Directories of dead machines are kept beyond those made ahead, up to this many times their
/// number: where machines come and go, none has to be made or removed.
const MOST_PER_READY: usize = 2;

pub(super) struct Spare {
    pub(super) name: String,
    pub(super) tasks: Vec<OwnedFd>,
    pub(super) commands: Option<OwnedFd>,
    pub(super) oom_events: Option<OwnedFd>,
}

pub(super) struct Spares {
    kept: Mutex<Vec<Spare>>,
    ready: usize,
    next: AtomicU64,
}

impl Spares {
    pub(super) fn new(ready: usize) -> Self {
        Self { kept: Mutex::new(Vec::new()), ready, next: AtomicU64::new(0) }
    }

    /// One that was made ahead, or a new one. Those that somebody removed are passed over.
    pub(super) fn take(&self, hierarchies: &Hierarchies) -> io::Result<Spare> {
        loop {
            let spare = self.kept().pop();
            match spare {
                None => return self.make(hierarchies),
                Some(spare) if is_there(hierarchies, &spare.name) => return Ok(spare),
                Some(spare) => drop(hierarchies.remove(&spare.name)),
            }
        }
    }

    pub(super) fn refill(&self, hierarchies: &Hierarchies) {
        while self.kept().len() < self.ready {
            match self.make(hierarchies) {
                Ok(spare) => self.kept().push(spare),
                Err(error) => {
                    tracing::warn!(%error, "cannot make cgroups ahead");
                    return;
                }
            }
        }
    }

    /// Keeps a dead machine's directories for the next one, if nothing of it shows any more.
    pub(super) fn recycle(&self, hierarchies: &Hierarchies, id: &SandboxId) -> bool {
        remove_commands(hierarchies, id.as_str());
        if self.kept().len() >= MOST_PER_READY * self.ready || !is_clean(hierarchies, id.as_str()) {
            return false;
        }
        let name = self.next_name();
        let recycled =
            hierarchies.rename(id.as_str(), &name).and_then(|()| open(hierarchies, name.clone()));
        match recycled {
            Ok(spare) => {
                self.kept().push(spare);
                true
            }
            Err(_) => {
                let _ = hierarchies.remove(&name);
                false
            }
        }
    }

    /// What an earlier daemon left: empty, or with a machine that it never got to know.
    pub(super) fn remove_old(&self, hierarchies: &Hierarchies) {
        let deadline = Instant::now() + STATUS_DEADLINE;
        for name in old_names(hierarchies) {
            while !hierarchies.remove(&name).unwrap_or(true) && Instant::now() < deadline {
                let _ = hierarchies.kill(&name);
                std::thread::sleep(KERNEL_POLL);
            }
        }
    }

    pub(super) fn close(&self, hierarchies: &Hierarchies) {
        let kept = std::mem::take(&mut *self.kept());
        drop(kept);
        // Also those that could not be opened, as when there were no descriptors left.
        for name in old_names(hierarchies) {
            let _ = hierarchies.remove(&name);
        }
    }

    fn make(&self, hierarchies: &Hierarchies) -> io::Result<Spare> {
        let name = self.next_name();
        let made = hierarchies.all.iter().try_for_each(|base| fs::create_dir(base.join(&name)));
        let opened = made.and_then(|()| open(hierarchies, name.clone()));
        if opened.is_err() {
            let _ = hierarchies.remove(&name);
        }
        opened
    }

    fn next_name(&self) -> String {
        format!("{PREFIX}{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(hierarchies: &Hierarchies, name: String) -> io::Result<Spare> {
    let tasks = |base: &PathBuf| {
        Ok(OpenOptions::new().write(true).open(base.join(&name).join("tasks"))?.into())
    };
    let tasks = hierarchies.all.iter().map(tasks).collect::<io::Result<_>>()?;
    let commands = hierarchies.dir("freezer", &name).map(|dir| open_detached(&dir)).transpose()?;
    let oom_events = hierarchies
        .dir("memory", &name)
        .map(|dir| File::open(dir.join("memory.oom_control")).map(OwnedFd::from))
        .transpose()?;
    Ok(Spare { name, tasks, commands, oom_events })
}

/// Looks at one hierarchy for all: whoever removes one, removes them together.
fn is_there(hierarchies: &Hierarchies, name: &str) -> bool {
    hierarchies.all.first().is_none_or(|base| base.join(name).exists())
}

/// What the runner made for its commands.
fn remove_commands(hierarchies: &Hierarchies, name: &str) {
    let Some(dir) = hierarchies.dir("freezer", name) else { return };
    if is_childless(&dir) {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = remove_tree(&entry.path());
        }
    }
}

fn is_clean(hierarchies: &Hierarchies, name: &str) -> bool {
    let unused = |base: &PathBuf| is_childless(&base.join(name)) && is_empty(&base.join(name));
    let reset = |controller: &str, file: &str, value: &str| {
        hierarchies.dir(controller, name).is_none_or(|dir| write(&dir.join(file), value).is_ok())
    };
    let owned_by_root = |dir: PathBuf| std::os::unix::fs::chown(dir, Some(0), Some(0)).is_ok();
    hierarchies.all.iter().all(unused)
        && hierarchies.dir("memory", name).is_none_or(|dir| is_light(&dir))
        && reset("memory", "memory.max_usage_in_bytes", "0")
        && reset("cpuacct", "cpuacct.usage", "0")
        && hierarchies.dir("freezer", name).is_none_or(owned_by_root)
}

/// Each directory below is one more link to this one.
fn is_childless(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|dir| dir.nlink() == 2)
}

fn is_empty(dir: &Path) -> bool {
    fs::read(dir.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty())
}

/// The counter of OOM kills cannot be reset.
fn is_light(memory: &Path) -> bool {
    let kills = read_key(&memory.join("memory.oom_control"), "oom_kill");
    let charged = read_u64(&memory.join("memory.usage_in_bytes"));
    matches!(kills, Ok(Some(0))) && charged.is_ok_and(|bytes| bytes < RECYCLE_BELOW_BYTES)
}

fn old_names(hierarchies: &Hierarchies) -> Vec<String> {
    let entries = hierarchies.all.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    names.sort();
    names.dedup();
    names
}
