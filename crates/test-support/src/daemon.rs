//! A real `sandbank serve` on a data directory and port of its own.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Api, EngineUnderTest, PrivateDocker, eventually, residue};

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(20);

pub struct TestDaemon {
    binary: PathBuf,
    data: tempfile::TempDir,
    port: u16,
    settings: Vec<(String, String)>,
    child: Option<Child>,
    engine: EngineUnderTest,
}

impl TestDaemon {
    /// `binary` is `env!("CARGO_BIN_EXE_sandbank")` of the calling test.
    pub async fn start(binary: impl AsRef<Path>) -> anyhow::Result<Self> {
        Self::start_with(binary, &[]).await
    }

    /// With extra environment settings such as `("SANDBOXD_MAX_CONCURRENT", "2")`.
    pub async fn start_with(
        binary: impl AsRef<Path>,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut daemon = Self::prepare(binary, settings)?;
        daemon.launch().await?;
        Ok(daemon)
    }

    /// Everything but the start: `launch` does that, when the test has changed what it wants to.
    pub fn prepare(binary: impl AsRef<Path>, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let engine = EngineUnderTest::get()?;
        let own = engine.settings();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let all = own.chain(settings.iter().copied());
        Ok(Self {
            binary: binary.as_ref().to_owned(),
            data: tempfile::Builder::new().prefix("sandbank-test-").tempdir()?,
            port: free_port()?,
            settings: all.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            child: None,
            engine,
        })
    }

    /// Changes or takes away a setting from the next launch on.
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    pub fn log_path(&self) -> PathBuf {
        self.data.path().join("test-daemon.log")
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Where its sandboxes are, if not on this machine itself.
    pub fn docker(&self) -> Option<&PrivateDocker> {
        self.engine.docker().map(|docker| &**docker)
    }

    /// For what outlives a borrow of the daemon.
    pub fn shared_docker(&self) -> Option<Arc<PrivateDocker>> {
        self.engine.docker().cloned()
    }

    pub fn instance(&self) -> anyhow::Result<String> {
        let path = self.data.path().join("instance");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.trim().to_owned())
    }

    /// What the next launch is told by its environment, beside its data directory and port.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Ids of all machines there are, living or not, as the host or Docker shows them.
    pub fn machines(&self) -> anyhow::Result<BTreeSet<String>> {
        if let Some(docker) = self.docker() {
            return Ok(docker.sandboxes_of(&self.instance()?, &[])?.0);
        }
        let entries = std::fs::read_dir(self.data.path().join("machines")).into_iter().flatten();
        let machines = entries.flatten().filter(|entry| entry.path().is_dir());
        Ok(machines.filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Kills the first process of a machine behind the daemon's back, where that is a container's.
    /// False where machines are of another kind.
    pub fn kill_container(&self, sandbox: &str) -> anyhow::Result<bool> {
        let Some(docker) = self.docker() else { return Ok(false) };
        docker.said(&["kill", &format!("sandbank-{sandbox}")]).map(|_| true)
    }

    /// Signals the first process of a machine behind the daemon's back, wherever machines are.
    pub fn signal_runner(&self, sandbox: &str, signal: Signal) -> anyhow::Result<()> {
        if let Some(docker) = self.docker() {
            // Docker has its own process ids, and its own way to them.
            let option = format!("--signal={}", signal.as_raw());
            return docker.said(&["kill", &option, &format!("sandbank-{sandbox}")]).map(drop);
        }
        let path = self.data.path().join("machines").join(sandbox).join("machine.json");
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let pid = record["process"]["pid"].as_i64().context("no pid in the record")?;
        Ok(kill_process(Pid::from_raw(i32::try_from(pid)?).context("not a pid")?, signal)?)
    }

    pub fn token(&self) -> anyhow::Result<String> {
        let path = self.data.path().join("token");
        Ok(std::fs::read_to_string(&path)
            .with_context(|| path.display().to_string())?
            .trim()
            .into())
    }

    pub fn api(&self) -> anyhow::Result<Api> {
        Ok(Api::new(self.url(), self.token()?))
    }

    /// A `sandbank` command line that talks to this daemon.
    pub fn cli(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("SANDBANK_URL", self.url()).env("SANDBANK_DATA_DIR", self.data.path());
        if let Ok(token) = self.token() {
            command.env("SANDBANK_TOKEN", token);
        }
        command
    }

    /// Starts the daemon again on the same data directory and port.
    pub async fn launch(&mut self) -> anyhow::Result<()> {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path())?;
        let child = Command::new(&self.binary)
            .arg("serve")
            .env("SANDBANK_DATA_DIR", self.data.path())
            .env("SANDBOXD_PORT", self.port.to_string())
            .env("SANDBANK_LOG", "debug")
            .envs(self.settings())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", self.binary.display()))?;
        self.child = Some(child);
        let health = format!("{}/v1/health", self.url());
        let healthy = eventually("the daemon to be healthy", START_LIMIT, || async {
            let answer = reqwest::get(&health).await.ok()?;
            answer.status().is_success().then_some(())
        });
        healthy.await.with_context(|| self.log_tail())
    }

    /// `kill -9`: nothing of the daemon gets to tidy up.
    pub fn kill_9(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Waits until the daemon has died by itself.
    pub async fn died(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        let child = self.child.as_mut().context("no daemon runs")?;
        let status = eventually("the daemon to die", START_LIMIT, || {
            let status = child.try_wait();
            async move { status.ok().flatten() }
        })
        .await?;
        self.child = None;
        Ok(status)
    }

    /// SIGTERM and the exit code.
    pub async fn terminate(&mut self) -> anyhow::Result<Option<i32>> {
        let Some(mut child) = self.child.take() else { return Ok(None) };
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM)?;
        let status = eventually("the daemon to leave after SIGTERM", STOP_LIMIT, || {
            let status = child.try_wait();
            async move { status.ok().flatten() }
        })
        .await;
        if status.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        Ok(status?.code())
    }

    /// Deletes every sandbox, stops the daemon, and says what is left on the host.
    pub async fn finish(mut self) -> anyhow::Result<()> {
        self.tidy().await?;
        let left = self.residue()?;
        anyhow::ensure!(left.is_empty(), "left on the host: {left:#?}\n{}", self.log_tail());
        Ok(())
    }

    /// What there is of it on the host and in Docker, and does not go by itself.
    pub fn residue(&self) -> anyhow::Result<Vec<String>> {
        self.engine.residue(self.data.path())
    }

    async fn tidy(&mut self) -> anyhow::Result<()> {
        if self.child.is_none() {
            self.launch().await?;
        }
        self.api()?.delete_all().await?;
        self.terminate().await.map(drop)
    }

    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

/// A test that fails half-way must not leave machines on the host.
impl Drop for TestDaemon {
    fn drop(&mut self) {
        if self.child.is_none() && residue::of(self.data.path()).is_empty() {
            return;
        }
        std::thread::scope(|scope| {
            let cleaner = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                if runtime.block_on(self.tidy()).is_ok() {
                    return Ok(());
                }
                // It may be what was tested that keeps it from tidying up.
                self.set("SANDBANK_FAULT", None);
                self.kill_9()?;
                runtime.block_on(self.tidy())
            });
            if let Ok(Err(error)) = cleaner.join() {
                eprintln!("cleaning up after a test failed: {error:#}");
            }
        });
        let _ = self.kill_9();
    }
}

/// One that the kernel gives nobody by itself, and that no other test of this process is given: a
/// daemon that is killed and started again has it for all that time.
pub fn free_port() -> anyhow::Result<u16> {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 10_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Of two processes one does not look where the other begins.
    let begin = std::process::id().wrapping_mul(101) % COUNT;
    for _ in 0..COUNT {
        let number = begin + GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + number % COUNT)?;
        // Not by listening on it: a process that another thread is just starting would have it for a moment.
        let tried = TcpStream::connect(("127.0.0.1", port));
        if tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return Ok(port);
        }
    }
    anyhow::bail!("no port from {FIRST} to {} is free", FIRST + COUNT - 1)
}
