//! Cgroups, directories, a link and a packet filter on this host.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use sandbank_test_support::TestDaemon;

use super::{LOOK_ALIKE, Planted, STRANGER};
use crate::objects::cgroup_bases;
use crate::small_disk::run;

const LINK: &str = "sbkzzzzzzz70";
const PEER: &str = "sbkzzzzzzz7p";
const TABLE: &str = "sandbankish";

pub(super) struct Foreign {
    cgroups: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Foreign {
    pub(super) fn plant(daemon: &TestDaemon) -> anyhow::Result<Self> {
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
}

impl Planted for Foreign {
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
