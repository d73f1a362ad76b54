//! The private daemon that is measured: its own data directory, its own port, and nothing of it
//! left afterwards. Settings of the caller's environment do not reach it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::api::{Api, Pool};
use crate::http::{Address, Client};
use crate::limits;

/// What makes the daemon's sandboxes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EngineChoice<'a> {
    Native,
    /// Containers of this image, in the Docker daemon that listens there.
    Docker {
        socket: &'a Path,
        image: &'static str,
    },
}

impl EngineChoice<'_> {
    fn pool(self) -> Pool {
        match self {
            Self::Native => Pool { image: "host", size: 4 },
            Self::Docker { image, .. } => Pool { image, size: 2 },
        }
    }
}

pub(crate) struct PrivateDaemon {
    child: Child,
    /// None once it is removed.
    dir: Option<TempDir>,
    data_dir: PathBuf,
    pub(crate) api: Api,
}

impl PrivateDaemon {
    /// Starts `binary serve` with room for `sandboxes` and waits until it is healthy.
    pub(crate) async fn start(
        binary: &Path,
        engine: EngineChoice<'_>,
        sandboxes: usize,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sandbank-bench-").tempdir()?;
        let data_dir = dir.path().join("data");
        fs::create_dir(&data_dir)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = fs::File::create(dir.path().join("daemon.log"))?;
        let child = command(binary, engine, &data_dir, port, sandboxes)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("start a private daemon")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let api = Api::new(Client::new(Address::Tcp(address), None), engine.pool());
        let mut daemon = Self { child, dir: Some(dir), data_dir, api };
        if let Err(error) = daemon.become_healthy(address, engine.pool()).await {
            let error = error.context(daemon.log_tail());
            let _ = daemon.child.kill();
            let _ = daemon.child.wait();
            daemon.remove_dir()?;
            return Err(error);
        }
        Ok(daemon)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    async fn become_healthy(&mut self, address: SocketAddr, pool: Pool) -> anyhow::Result<()> {
        let deadline = Instant::now() + limits::DAEMON_START;
        while !self.api.is_healthy().await {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the private daemon ended at once: {status}");
            }
            let late = Instant::now() > deadline;
            anyhow::ensure!(!late, "the private daemon is not healthy yet");
            tokio::time::sleep(limits::POLL).await;
        }
        let token = fs::read_to_string(self.data_dir.join("token")).context("read the token")?;
        let client = Client::new(Address::Tcp(address), Some(token.trim().to_owned()));
        self.api = Api::new(client, pool);
        Ok(())
    }

    /// Removes every sandbox, stops the daemon and deletes its directory. What the daemon should
    /// have unmounted itself is unmounted, and reported.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        let emptied = self.remove_sandboxes().await;
        let stopped = self.stop().await;
        if emptied.is_err() {
            let kept = self.dir.take().map(TempDir::keep).unwrap_or_default();
            let kept = format!("left behind because of sandboxes in it: {}", kept.display());
            return emptied.context(self.log_tail()).context(kept);
        }
        let left = self.remove_dir()?;
        stopped?;
        anyhow::ensure!(left.is_empty(), "the private daemon left {} mounts", left.len());
        Ok(())
    }

    /// Deletes the directory of a daemon that has ended, and says what was still mounted in it.
    fn remove_dir(&mut self) -> anyhow::Result<Vec<String>> {
        let Some(dir) = self.dir.take() else { return Ok(Vec::new()) };
        let left = self.mounts();
        // The newest mounts are last and may lie in older ones.
        for point in left.iter().rev() {
            unmount(point.as_str(), UnmountFlags::empty())
                .with_context(|| format!("unmount {point}"))?;
        }
        dir.close().context("remove the private daemon's directory")?;
        Ok(left)
    }

    async fn remove_sandboxes(&self) -> anyhow::Result<()> {
        for id in self.api.sandboxes().await? {
            self.api.destroy(&id).await?;
        }
        Ok(())
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + limits::DAEMON_STOP;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
                self.child.wait()?;
                anyhow::bail!("the private daemon did not stop within {:?}", limits::DAEMON_STOP);
            }
            tokio::time::sleep(limits::POLL).await;
        }
        Ok(())
    }

    fn mounts(&self) -> Vec<String> {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = table.lines().filter_map(|line| line.split(' ').nth(4));
        points.filter(|p| Path::new(p).starts_with(&self.data_dir)).map(str::to_owned).collect()
    }

    fn log_tail(&self) -> String {
        let log = self.data_dir.with_file_name("daemon.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(limits::LOG_TAIL_LINES)..];
        format!("the end of the private daemon's log:\n{}", tail.join("\n"))
    }
}

/// Only a panic gets here with a directory: the sandboxes stay until their idle time is over, so
/// their files must stay, too.
impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take()
            && self.child.try_wait().is_ok_and(|status| status.is_none())
        {
            let _ = self.child.kill();
            let _ = self.child.wait();
            eprintln!(
                "bench: left behind, remove it when its sandboxes are gone: {:?}",
                dir.keep()
            );
        }
    }
}

fn command(
    binary: &Path,
    engine: EngineChoice<'_>,
    data_dir: &Path,
    port: u16,
    sandboxes: usize,
) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("SANDBANK_") || text.starts_with("SANDBOXD_") {
            command.env_remove(name);
        }
    }
    command
        .arg("serve")
        .env("SANDBANK_DATA_DIR", data_dir)
        .env("SANDBANK_HOST", Ipv4Addr::LOCALHOST.to_string())
        .env("SANDBANK_PORT", port.to_string())
        .env("SANDBANK_MAX_SANDBOXES", sandboxes.to_string())
        .env("SANDBANK_POOL", engine.pool().setting())
        .env("SANDBANK_REQUESTS_PER_SECOND", "0")
        .env("SANDBANK_HEADER_TIMEOUT_MS", "120000")
        .env("SANDBANK_LOG", "warn")
        .stdin(Stdio::null());
    if let EngineChoice::Docker { socket, image } = engine {
        command
            .env("SANDBANK_ENGINE", "docker")
            .env("SANDBANK_DOCKER_HOST", socket)
            .env("SANDBANK_DOCKER_IMAGE", image);
    }
    // Ctrl-C is for the tool, which then stops the daemon in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}
