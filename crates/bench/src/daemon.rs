//! The private daemon that is measured: its own data directory, its own port, and nothing of it
//! left afterwards. Settings of the caller's environment do not reach it.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use http::header;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use sandbank_workspace::{LocalPlace, LocalSettings};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::api::{Api, Pool};
use crate::http::{Address, Client};
use crate::limits;

/// Where a daemon in mode local has its runner, below its data directory.
const LOCAL_RUNNER: &str = "workspace-runner";

/// How the names of a daemon's settings begin.
const OF_A_DAEMON: [&str; 3] = ["SANDBANK_", "SANDBOXD_", "REMCOCHAT_"];

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
    started: Instant,
    /// None once it is removed.
    dir: Option<TempDir>,
    data_dir: PathBuf,
    address: SocketAddr,
    pool: Pool,
    /// Of a workspace in mode local: its runner would go on working there.
    local_root: Option<PathBuf>,
    pub(crate) api: Api,
}

impl PrivateDaemon {
    /// Starts `binary serve` with room for `sandboxes` and waits until it is healthy.
    pub(crate) async fn start(
        binary: &Path,
        engine: EngineChoice<'_>,
        sandboxes: usize,
    ) -> anyhow::Result<Self> {
        Self::start_with(binary, engine, sandboxes, &[], None).await
    }

    /// The same, with settings of its own.
    pub(crate) async fn start_with(
        binary: &Path,
        engine: EngineChoice<'_>,
        sandboxes: usize,
        settings: &[(&str, OsString)],
        local_root: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sandbank-bench-").tempdir()?;
        let data_dir = dir.path().join("data");
        fs::create_dir(&data_dir)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = fs::File::create(dir.path().join("daemon.log"))?;
        let started = Instant::now();
        let child = command(binary, engine, &data_dir, port, sandboxes)
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("start a private daemon")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let pool = engine.pool();
        let api = Api::new(Client::new(Address::Tcp(address), None), pool);
        let dir = Some(dir);
        let mut daemon = Self { child, started, dir, data_dir, address, pool, local_root, api };
        if let Err(error) = daemon.become_healthy().await {
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

    /// Since its start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    async fn become_healthy(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + limits::DAEMON_START;
        while !self.api.is_healthy().await {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the private daemon ended at once: {status}");
            }
            let late = Instant::now() > deadline;
            anyhow::ensure!(!late, "the private daemon is not healthy yet");
            tokio::time::sleep(limits::POLL).await;
        }
        let client = Client::new(Address::Tcp(self.address), Some(self.token()?));
        self.api = Api::new(client, self.pool);
        Ok(())
    }

    fn token(&self) -> anyhow::Result<String> {
        let token = fs::read_to_string(self.data_dir.join("token")).context("read the token")?;
        Ok(token.trim().to_owned())
    }

    /// What opens a WebSocket there.
    pub(crate) fn upgrade(&self, path: &str) -> anyhow::Result<http::Request<()>> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request()?;
        let bearer = format!("Bearer {}", self.token()?).parse()?;
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        Ok(request)
    }

    /// Removes every sandbox, stops the daemon and deletes its directory. What the daemon should
    /// have unmounted itself is unmounted, and reported.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        self.wind_up().await
    }

    async fn wind_up(&mut self) -> anyhow::Result<()> {
        let emptied = self.remove_sandboxes().await;
        let stopped = self.stop().await;
        if let Some(root) = self.local_root.take() {
            let settings = LocalSettings::new(root, self.data_dir.join(LOCAL_RUNNER));
            LocalPlace::open(settings)?.stop().await?;
        }
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

    pub(crate) fn log_tail(&self) -> String {
        let log = self.data_dir.with_file_name("daemon.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(limits::LOG_TAIL_LINES)..];
        format!("the end of the private daemon's log:\n{}", tail.join("\n"))
    }
}

/// A run that was interrupted, or a panic, gets here with a directory. Nobody awaits anything any
/// more, so this has a thread and a runtime to itself.
impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        if self.dir.is_none() {
            return;
        }
        let winding_up = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                // It may be starting; then it does not say yet what there is to remove.
                self.become_healthy().await?;
                self.wind_up().await
            })
        };
        let done = std::thread::scope(|scope| scope.spawn(winding_up).join());
        if let Ok(Err(error)) = done {
            eprintln!("bench: {error:#}");
        }
        // The sandboxes stay until their idle time is over, so their files must stay, too.
        if let Some(dir) = self.dir.take() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let kept = dir.keep();
            eprintln!("bench: left behind, remove it when its sandboxes are gone: {kept:?}");
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
        if OF_A_DAEMON.iter().any(|prefix| text.starts_with(prefix)) {
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
