//! What there is of sandboxes: rows as the API lists them, and objects as the host shows them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use sandbank_test_support::{Api, TestDaemon, eventually};

/// Longer than any deadline that a sandbox on its way in or out may take.
pub(crate) const SETTLED: Duration = Duration::from_secs(40);

/// Waits until rows and objects are the same, and all of them run. Their ids are the answer.
pub(crate) async fn agree(daemon: &TestDaemon, api: &Api) -> anyhow::Result<BTreeSet<String>> {
    let seen = std::cell::RefCell::new(String::new());
    let settled = eventually("rows and objects to be the same", SETTLED, || async {
        let rows = api.sandboxes().await.ok()?;
        let settled = rows.iter().all(|row| row["state"] == "running");
        let id = |row: &serde_json::Value| Some(row["id"].as_str()?.to_owned());
        let own = rows.iter().filter(|row| row["workspace"].is_null()).filter_map(id).collect();
        let rows: BTreeSet<String> = rows.iter().filter_map(id).collect();
        let objects = Objects::of(daemon).ok()?;
        *seen.borrow_mut() = format!("rows {rows:?}, {objects:?}");
        (settled && objects.are(&rows, &own)).then_some(rows)
    });
    settled.await.with_context(|| seen.borrow().clone()).with_context(|| daemon.log_tail())
}

/// Ids of each kind of object, by what the host or Docker says.
#[derive(Debug)]
pub(crate) struct Objects {
    machines: BTreeSet<String>,
    /// Machines' cgroups on this host; containers that run in Docker.
    living: BTreeSet<String>,
    workspaces: BTreeSet<String>,
}

impl Objects {
    pub(crate) fn of(daemon: &TestDaemon) -> anyhow::Result<Self> {
        if let Some(docker) = daemon.docker() {
            let instance = daemon.instance()?;
            let (machines, workspaces) = docker.sandboxes_of(&instance, &[])?;
            let (living, _) = docker.sandboxes_of(&instance, &["running"])?;
            return Ok(Self { machines, living, workspaces });
        }
        let data = daemon.data_dir();
        let living = cgroup_bases(daemon).iter().flat_map(|base| sandboxes_in(base)).collect();
        let workspaces = workspace_dirs(data).iter().flat_map(|dir| sandboxes_in(dir)).collect();
        Ok(Self { machines: sandboxes_in(&data.join("machines")), living, workspaces })
    }

    /// `own` are those with a workspace of their own.
    fn are(&self, ids: &BTreeSet<String>, own: &BTreeSet<String>) -> bool {
        self.machines == *ids && self.living == *ids && self.workspaces == *own
    }
}

/// The instance's directory in every hierarchy that has one.
pub(crate) fn cgroup_bases(daemon: &TestDaemon) -> Vec<PathBuf> {
    let instance = fs::read_to_string(daemon.data_dir().join("instance")).unwrap_or_default();
    let top = Path::new("/sys/fs/cgroup");
    let roots = fs::read_dir(top).into_iter().flatten().flatten().map(|entry| entry.path());
    let bases =
        roots.chain([top.to_owned()]).map(|root| root.join("sandbank").join(instance.trim()));
    bases.filter(|base| base.is_dir()).collect()
}

/// Where workspaces are, by storage: in a pool, on btrfs itself, or plain.
pub(crate) fn workspace_dirs(data: &Path) -> Vec<PathBuf> {
    let places = ["pool/subvolumes", "subvolumes", "workspaces"].map(|place| data.join(place));
    places.into_iter().filter(|place| place.is_dir()).collect()
}

fn sandboxes_in(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("sb") && name.len() == 18).collect()
}

/// The first process of a machine, from the engine's record.
pub(crate) fn runner_pid(daemon: &TestDaemon, id: &str) -> anyhow::Result<rustix::process::Pid> {
    let path = daemon.data_dir().join("machines").join(id).join("machine.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(path)?)?;
    let pid = record["process"]["pid"].as_i64().context("no pid in the record")?;
    rustix::process::Pid::from_raw(i32::try_from(pid)?).context("not a pid")
}
