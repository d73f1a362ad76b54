//! Things on the host that look like ours and are not: they survive our start, our reconciliation,
//! our deletes and our shutdown.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use sandbank_test_support::{TestDaemon, skip_unless_root};

use crate::SANDBANK;
use crate::objects::{agree, cgroup_bases};
use crate::small_disk::run;

/// Of an instance that nobody runs, but whose objects may be somebody's.
const STRANGER: &str = "izzzzzzz7";
const LINK: &str = "sbkzzzzzzz70";
const PEER: &str = "sbkzzzzzzz7p";
const TABLE: &str = "sandbankish";
const LOOK_ALIKE: &str = "sbaaaaaaaaaaaaaaaa";

#[tokio::test(flavor = "multi_thread")]
async fn look_alikes_and_another_instances_sandboxes_are_left_alone() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_POOL_SIZE", "1")];
    let neighbour = TestDaemon::start_with(SANDBANK, &settings).await?;
    let theirs = neighbour.api()?.create("same key").await?;
    neighbour.api()?.write(&theirs, "/workspace/kept", b"theirs").await?;

    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let ours = api.create("same key").await?;
    daemon.kill_9()?;
    let foreign = Foreign::plant(&daemon)?;
    daemon.launch().await?;
    ensure!(agree(&daemon, &api).await?.into_iter().eq([ours.clone()]), "not what was there");
    api.stop(&ours).await?;
    ensure!(agree(&daemon, &api).await?.is_empty());
    ensure!(daemon.terminate().await? == Some(0), "it did not leave in peace");

    foreign.check()?;
    let (code, out, _) = neighbour.api()?.run(&theirs, "cat kept").await?;
    ensure!((code, out.as_str()) == (0, "theirs"), "the neighbour's sandbox: {code} {out}");
    drop(foreign);
    daemon.finish().await?;
    neighbour.finish().await
}

/// Removed again when dropped.
struct Foreign {
    cgroups: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Foreign {
    fn plant(daemon: &TestDaemon) -> anyhow::Result<Self> {
        let mut planted = Self { cgroups: Vec::new(), files: Vec::new() };
        for base in cgroup_bases(daemon) {
            let top = base.parent().expect("instances are below sandbank");
            // Another instance's machine, and a group beside ours whose name goes on.
            let beside = format!("{}x", base.file_name().expect("named").display());
            for group in [top.join(STRANGER), top.join(beside)] {
                std::fs::create_dir(&group)?;
                std::fs::create_dir(group.join(LOOK_ALIKE))?;
                planted.cgroups.extend([group.join(LOOK_ALIKE), group]);
            }
        }
        let data = daemon.data_dir();
        for name in ["machines/sb-not-an-id", "machines/SBAAAAAAAAAAAAAAAA", "machines/backup"] {
            std::fs::create_dir(data.join(name))?;
            planted.files.push(data.join(name).join("precious"));
            std::fs::write(data.join(name).join("precious"), "x")?;
        }
        run("ip", &["link", "add", LINK, "type", "veth", "peer", "name"], Path::new(PEER))?;
        run("nft", &["add", "table", "inet"], Path::new(TABLE))?;
        Ok(planted)
    }

    fn check(&self) -> anyhow::Result<()> {
        for path in self.cgroups.iter().chain(&self.files) {
            ensure!(path.exists(), "{} was taken away", path.display());
        }
        ensure!(Path::new("/sys/class/net").join(LINK).exists(), "the link was taken away");
        run("nft", &["list", "table", "inet"], Path::new(TABLE))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for group in &self.cgroups {
            let _ = std::fs::remove_dir(group);
        }
        for directory in self.files.iter().filter_map(|file| file.parent()) {
            let _ = std::fs::remove_dir_all(directory);
        }
        let _ = Command::new("ip").args(["link", "delete", LINK]).output();
        let _ = Command::new("nft").args(["delete", "table", "inet", TABLE]).output();
    }
}
