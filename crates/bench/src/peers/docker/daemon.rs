//! A Docker daemon of the run's own: socket, images and containers in a temporary directory, in a
//! mount, a pid and a network namespace of its own, so that nothing of it outlives the run, a Docker
//! that is there already is neither used nor disturbed, and neither are the host's bridges and packet
//! filters.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::limits;
use crate::peers::process;

/// Where the daemon writes whatever else it is told.
const ETC: &str = "/etc/docker";

/// Mounts hide `/run`, where a containerd of the system would be found, and `/etc/docker`.
const INSIDE: &str = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /etc/docker && \
    ip link set lo up && exec \"$@\"";

pub(super) struct DockerDaemon {
    /// `unshare`, which dies last and takes every process of the namespace with it.
    child: Child,
    dir: TempDir,
    deadline: Instant,
    /// Whether `/etc/docker` is only there as the place of a mount.
    made_etc: bool,
}

impl DockerDaemon {
    pub(super) fn start(program: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sandbank-bench-docker-").tempdir()?;
        let at = |name: &str| dir.path().join(name);
        fs::write(at("daemon.json"), "{}")?;
        let log = fs::File::create(at("daemon.log"))?;
        let made_etc = !Path::new(ETC).exists();
        fs::create_dir_all(ETC)?;
        let mut command = process::bare(&["unshare", "--mount", "--pid", "--net", "--fork"])?;
        command
            .args(["--mount-proc", "--kill-child", "--propagation", "slave"])
            .args(["sh", "-c", INSIDE, "sh"])
            .arg(program)
            .arg("--host")
            .arg(format!("unix://{}", at("docker.sock").display()))
            .arg("--config-file")
            .arg(at("daemon.json"))
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("docker.pid"))
            .args(["--bridge", "none", "--log-level", "error"])
            .args(["--cgroup-parent", &cgroup()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // Ctrl-C is for the tool, which then stops the daemon in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().context("start a private Docker daemon")?;
        Ok(Self { child, dir, deadline: Instant::now() + limits::DAEMON_START, made_etc })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    /// An error when it has ended or is too late.
    pub(super) fn is_worth_waiting_for(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            anyhow::bail!("it ended at once: {status}");
        }
        anyhow::ensure!(Instant::now() < self.deadline, "it does not answer yet");
        Ok(())
    }

    pub(super) fn log_end(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("daemon.log")).unwrap_or_default();
        log.lines().next_back().unwrap_or("it logged nothing").to_owned()
    }

    pub(super) async fn finish(mut self) -> anyhow::Result<()> {
        if let Some(pid) = first_child(self.child.id()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + limits::DAEMON_STOP;
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            tokio::time::sleep(limits::POLL).await;
        }
        let path = self.dir.path().to_owned();
        drop(self);
        anyhow::ensure!(!path.exists(), "the private Docker daemon left {}", path.display());
        Ok(())
    }
}

impl DockerDaemon {
    /// Ends what is left, and the empty cgroups it had its containers in.
    fn remove_rest(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let name = cgroup();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let cgroups = mounts.lines().filter(|line| line.contains(" - cgroup"));
        for point in cgroups.filter_map(|line| line.split(' ').nth(4)) {
            let _ = fs::remove_dir(format!("{point}{name}"));
        }
        if self.made_etc {
            let _ = fs::remove_dir(ETC);
        }
    }
}

/// An interrupted search for peers gets here; the directory removes itself after this.
impl Drop for DockerDaemon {
    fn drop(&mut self) {
        self.remove_rest();
    }
}

/// Below which its containers have their cgroups.
fn cgroup() -> String {
    format!("/sandbank-bench-{}", std::process::id())
}

/// The daemon itself, whose parent only waits for it.
fn first_child(parent: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    Pid::from_raw(children.split(' ').next()?.parse().ok()?)
}
