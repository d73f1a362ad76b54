//! What a daemon and its machines use of this host.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sandbank_test_support::TestDaemon;

use crate::place::Place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) descriptors: usize,
    pub(super) threads: usize,
    pub(super) mounts: usize,
    pub(super) cgroups: usize,
    pub(super) machines: usize,
}

impl Usage {
    pub(super) fn of(daemon: &TestDaemon) -> anyhow::Result<Self> {
        let process = PathBuf::from(format!("/proc/{}", daemon.pid().context("no daemon")?));
        let instance = fs::read_to_string(daemon.data_dir().join("instance"))?;
        let mounts = fs::read_to_string(process.join("mountinfo"))?;
        let own = daemon.data_dir().display().to_string();
        let mut roots = entries(Path::new("/sys/fs/cgroup"));
        roots.push(PathBuf::from("/sys/fs/cgroup"));
        let groups = roots.iter().map(|root| {
            let own = entries(&root.join("sandbank").join(instance.trim()));
            own.iter().filter(|path| path.is_dir()).count()
        });
        Ok(Self {
            descriptors: entries(&process.join("fd")).len(),
            threads: entries(&process.join("task")).len(),
            mounts: mounts.lines().filter(|line| line.contains(&own)).count(),
            cgroups: groups.sum(),
            machines: entries(&daemon.data_dir().join("machines")).len(),
        })
    }

    /// Not more than `before`, but for `slack` descriptors and threads that come and go.
    pub(super) fn is_back_at(&self, before: &Self, slack: usize) -> bool {
        self.descriptors <= before.descriptors + slack
            && self.threads <= before.threads + slack
            && self.mounts <= before.mounts
            && self.cgroups <= before.cgroups + slack
            && self.machines <= before.machines
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A new sandbox of a daemon, as the cases have it.
pub(super) async fn place(daemon: &TestDaemon, key: &str) -> anyhow::Result<Place> {
    let api = daemon.api()?;
    let sandbox = api.create(key).await?;
    Ok(Place { api, sandbox, daemon: daemon.pid().context("no daemon")? })
}

/// The runner's pid on the host.
pub(super) fn runner_pid(
    daemon: &TestDaemon,
    sandbox: &str,
) -> anyhow::Result<rustix::process::Pid> {
    let path = daemon.data_dir().join("machines").join(sandbox).join("machine.json");
    let facts: serde_json::Value = serde_json::from_slice(&fs::read(path)?)?;
    let pid = facts["process"]["pid"].as_i64().context("no pid")?;
    rustix::process::Pid::from_raw(i32::try_from(pid)?).context("not a pid")
}
