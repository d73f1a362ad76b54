//! From the runner's bytes to a runner that answers.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::Stdio;
use std::sync::{LazyLock, PoisonError};

use sandbank_channel::RunnerClient;
use sandbank_protocol::{Hello, RunnerConfig, RunnerLog};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::process::Process;
use super::record::Record;
use super::{LOG, LocalPlace, SOCKET};
use crate::PlaceError;
use crate::limits::{MAX_LOG_BYTES, START_PATIENCE, START_POLL};

/// A program without a file, so that no file system's rules are in its way.
static PROGRAM: LazyLock<io::Result<std::os::fd::OwnedFd>> =
    LazyLock::new(|| sandbank_runner_binary::seal(sandbank_runner_binary::RUNNER));

/// Another thread's child may have the program open for writing until it becomes its own program.
const BUSY_TRIES: usize = 50;

impl LocalPlace {
    pub(super) async fn start(
        &self,
        root: (u64, u64),
    ) -> Result<(RunnerClient, Hello), PlaceError> {
        let started = Instant::now();
        let mut child = self.spawn().await.map_err(failed)?;
        // Before it answers: whoever comes after a crash in between finds it.
        let reached = match self.remember_child(&child, root) {
            Ok(()) => self.await_runner(&mut child, started).await,
            Err(error) => Err(failed(error)),
        };
        if let Err(error) = reached {
            let _ = child.kill().await;
            Record::remove(&self.settings.directory);
            return Err(error);
        }
        tracing::info!(pid = child.id(), root = %self.settings.root.display(), "the workspace's runner was started");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        reached
    }

    fn remember_child(&self, child: &Child, root: (u64, u64)) -> io::Result<()> {
        let pid = child.id().ok_or(ErrorKind::NotFound)?;
        self.remember(Process::of(pid.cast_signed())?, root)
    }

    async fn spawn(&self) -> io::Result<Child> {
        let program =
            PROGRAM.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        let config = RunnerConfig {
            workspace: path_text(&self.settings.root)?,
            workspace_aliases: vec!["/workspace".to_owned()],
            env: self.settings.env.clone(),
            log: RunnerLog::All,
            ..RunnerConfig::default()
        };
        // A runner before this one is gone; what it left is nobody's.
        match fs::remove_file(self.settings.directory.join(SOCKET)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut tries = 0;
        loop {
            let log = self.open_log()?;
            let spawned = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
                .arg0("sandbank-runner")
                .args(["serve", "--session", "--listen", SOCKET, "--config"])
                .arg(serde_json::to_string(&config).map_err(io::Error::other)?)
                .current_dir(&self.settings.directory)
                .env_clear()
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn();
            match spawned {
                Err(error)
                    if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
                {
                    tries += 1;
                    tokio::time::sleep(START_POLL).await;
                }
                other => return other,
            }
        }
    }

    async fn await_runner(
        &self,
        child: &mut Child,
        started: Instant,
    ) -> Result<(RunnerClient, Hello), PlaceError> {
        loop {
            if let Ok(stream) = self.dial().await {
                // Others cannot even see it: the directory is closed to them.
                let socket = self.settings.directory.join(SOCKET);
                fs::set_permissions(socket, Permissions::from_mode(0o600)).map_err(failed)?;
                return Ok(RunnerClient::connect(stream).await?);
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(PlaceError::Start(format!(
                    "it ended with {status}: {}",
                    self.last_words()
                )));
            }
            if started.elapsed() > START_PATIENCE {
                return Err(PlaceError::Start(format!(
                    "it does not answer: {}",
                    self.last_words()
                )));
            }
            tokio::time::sleep(START_POLL).await;
        }
    }

    /// Appended to by the runner; cut here, so that it never grows for ever.
    fn open_log(&self) -> io::Result<File> {
        let path = self.settings.directory.join(LOG);
        let mut options = File::options();
        let mut log = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        let length = log.metadata()?.len();
        if length > MAX_LOG_BYTES {
            let mut kept = Vec::new();
            log.seek(SeekFrom::End(-((MAX_LOG_BYTES / 2).cast_signed())))?;
            log.read_to_end(&mut kept)?;
            log.set_len(0)?;
            log.write_all(&kept)?;
        }
        Ok(log)
    }

    fn last_words(&self) -> String {
        let log = fs::read(self.settings.directory.join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let last = text.lines().last().unwrap_or("it said nothing");
        last.chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

fn failed(error: io::Error) -> PlaceError {
    PlaceError::Start(error.to_string())
}

fn path_text(path: &std::path::Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the workspace's path is not UTF-8"))
}
