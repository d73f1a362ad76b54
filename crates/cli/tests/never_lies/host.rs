//! What a daemon and its machines use of this host, and of Docker.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sandbank_test_support::TestDaemon;

use crate::place::Place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) mounts: usize,
    pub(crate) cgroups: usize,
    /// Machines; in Docker containers, volumes and networks.
    pub(crate) objects: usize,
}

impl Usage {
    pub(crate) fn of(daemon: &TestDaemon) -> anyhow::Result<Self> {
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
        let objects = match daemon.docker() {
            Some(docker) => docker.objects_of(instance.trim())?.len(),
            None => entries(&daemon.data_dir().join("machines")).len(),
        };
        Ok(Self {
            descriptors: entries(&process.join("fd")).len(),
            threads: entries(&process.join("task")).len(),
            mounts: mounts.lines().filter(|line| line.contains(&own)).count(),
            cgroups: groups.sum(),
            objects,
        })
    }

    /// Not more than `before`, but for `slack` descriptors and threads that come and go.
    pub(crate) fn is_back_at(&self, before: &Self, slack: usize) -> bool {
        self.descriptors <= before.descriptors + slack
            && self.threads <= before.threads + slack
            && self.mounts <= before.mounts
            && self.cgroups <= before.cgroups + slack
            && self.objects <= before.objects
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A new sandbox of a daemon, as the cases have it.
pub(crate) async fn place(daemon: &TestDaemon, key: &str) -> anyhow::Result<Place> {
    let api = daemon.api()?;
    let sandbox = api.create(key).await?;
    Ok(Place { api, sandbox, daemon: daemon.pid().context("no daemon")? })
}
