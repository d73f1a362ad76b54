//! Rows as a daemon would write them, and small file systems to break.

use std::path::{Path, PathBuf};
use std::process::Command;

use sandbank_engine::{ImageName, Limits, NetworkMode, SandboxId};
use sandbank_store::{LeaseRow, RowState, SandboxRow, Stamp};

pub(crate) fn row(key: &str) -> SandboxRow {
    SandboxRow {
        id: SandboxId::random(),
        key: key.to_owned(),
        state: RowState::Creating,
        cause: None,
        engine: "native".to_owned(),
        image: ImageName::host(),
        runtime: "node24".to_owned(),
        network: NetworkMode::None,
        limits: Limits {
            cpu_millis: 2000,
            memory_bytes: 1 << 31,
            pids: 512,
            disk_bytes: Some(1 << 30),
            tmp_bytes: 128 << 20,
        },
        ports: vec![3000, 8080],
        workspace: Some("project".parse().unwrap()),
        created_at_ms: 1_700_000_000_000,
        lease: LeaseRow {
            idle_ttl_ms: 900_000,
            last_active: Stamp { wall_ms: 1_700_000_000_000, boot_ms: -5 },
            ends_at: Some(Stamp { wall_ms: 1_700_000_900_000, boot_ms: 900_000 }),
            boot_id: "boot".to_owned(),
            commands: 2,
        },
        closed_at_ms: None,
    }
}

/// A small tmpfs of its own, unmounted when dropped. Needs root.
pub(crate) struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(size: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let options = format!("size={size},mode=0700");
        run("mount", &["-t", "tmpfs", "-o", &options, "sandbank-test"], directory.path());
        Self { directory }
    }

    pub(crate) fn make_read_only(&self) {
        run("mount", &["-o", "remount,ro"], self.directory.path());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["--lazy"], self.directory.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?} failed");
}
