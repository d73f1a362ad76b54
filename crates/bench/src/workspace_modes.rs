//! Private daemons with a workspace, one of each mode, with the same repository in it.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::daemon::{EngineChoice, PrivateDaemon};
use crate::limits;
use crate::peers::blocking;

/// Files of the repository's first level.
pub(crate) const FILES: usize = 100;

/// A file of it, changed since the last commit, and one that was not.
pub(crate) const FILE: &str = "source_7.rs";

/// Shared by a daemon and the service, on loopback and for as long as the part runs.
const SECRET: &str = "nothing to hide: the benchmark's own trees";

/// Room for the sandbox of the workspace, and for those that a daemon tests itself with.
const SANDBOXES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Local,
    Sandbox,
    Remote,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Local, Self::Sandbox, Self::Remote];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Sandbox => "sandbox",
            Self::Remote => "remote",
        }
    }

    pub(crate) fn who(self) -> String {
        format!("sandbank, mode {}", self.name())
    }
}

/// Directories outside of every daemon's own, and the service of mode remote.
pub(crate) struct Places {
    binary: PathBuf,
    service: Option<Child>,
    port: u16,
    dir: TempDir,
}

impl Places {
    /// Starts the service, too.
    pub(crate) async fn prepare(binary: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sandbank-bench-workspace-").tempdir()?;
        for name in [Mode::Local.name(), Mode::Remote.name()] {
            fs::create_dir(dir.path().join(name))?;
            make_repository(dir.path().join(name)).await?;
        }
        let secret = dir.path().join("secret");
        fs::write(&secret, SECRET)?;
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o600))?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut places = Self { binary: binary.to_owned(), service: None, port, dir };
        places.service = Some(places.service_command().spawn().context("start a service")?);
        let deadline = Instant::now() + limits::DAEMON_START;
        while tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            anyhow::ensure!(Instant::now() < deadline, "the workspace service does not listen yet");
            tokio::time::sleep(limits::POLL).await;
        }
        Ok(places)
    }

    fn service_command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(["workspace-service", "--log-level", "warn"])
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--root")
            .arg(self.dir.path().join(Mode::Remote.name()))
            .arg("--secret-file")
            .arg(self.dir.path().join("secret"))
            .arg("--data-dir")
            .arg(self.dir.path().join("service"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Ctrl-C is for the tool, as with daemons.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    /// A daemon that has answered its first question about its workspace, and how long it took
    /// from its start.
    pub(crate) async fn start(&self, mode: Mode) -> anyhow::Result<(PrivateDaemon, Duration)> {
        self.start_with(mode, &[]).await
    }

    /// The same, with further settings.
    pub(crate) async fn start_with(
        &self,
        mode: Mode,
        others: &[(&'static str, OsString)],
    ) -> anyhow::Result<(PrivateDaemon, Duration)> {
        let mut settings: Vec<(&str, OsString)> = vec![
            ("SANDBANK_WORKSPACE_MODE", mode.name().into()),
            // Made for nobody, and in the way of what is measured.
            ("SANDBANK_POOL", "".into()),
        ];
        settings.extend_from_slice(others);
        let path = |name: &str| self.dir.path().join(name);
        let local_root = (mode == Mode::Local).then(|| path(mode.name()));
        match mode {
            Mode::Local => {
                settings.push(("SANDBANK_WORKSPACE_ROOT", path(mode.name()).into()));
            }
            Mode::Sandbox => {}
            Mode::Remote => {
                let url = format!("http://127.0.0.1:{}", self.port);
                settings.push(("SANDBANK_WORKSPACE_SERVICE_URL", url.into()));
                let secret = path("secret").into();
                settings.push(("SANDBANK_WORKSPACE_SERVICE_SECRET_FILE", secret));
            }
        }
        let engine = EngineChoice::Native;
        let binary = &self.binary;
        let daemon =
            PrivateDaemon::start_with(binary, engine, SANDBOXES, &settings, local_root).await?;
        if let Err(error) = daemon.api.get("/api/tree?path=.").await {
            let error = error.context(daemon.log_tail());
            daemon.finish().await?;
            return Err(error);
        }
        let took = daemon.age();
        Ok((daemon, took))
    }

    /// Puts the repository where mode sandbox has its workspace.
    pub(crate) async fn fill_sandbox(&self, daemon: &PrivateDaemon) -> anyhow::Result<()> {
        let sandboxes = daemon.api.sandboxes().await?;
        let id = sandboxes.first().context("mode sandbox has no sandbox")?;
        daemon.api.run(id, &["sh", "-c", &repository_script()]).await
    }

    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        let ended = self.end_service();
        let mut stop = self.service_command();
        stop.arg("--stop-runner");
        let stopped = blocking(move || Ok(stop.status()?)).await?;
        fs::remove_dir_all(self.dir.path()).context("remove the workspaces")?;
        ended?;
        anyhow::ensure!(stopped.success(), "the service's runner did not end: {stopped}");
        Ok(())
    }

    fn end_service(&mut self) -> anyhow::Result<()> {
        let Some(mut service) = self.service.take() else { return Ok(()) };
        kill_process(Pid::from_child(&service), Signal::TERM)?;
        service.wait()?;
        Ok(())
    }
}

/// An error on the way leaves no process behind.
impl Drop for Places {
    fn drop(&mut self) {
        if self.service.is_some() {
            let _ = self.end_service();
            let _ = self.service_command().arg("--stop-runner").status();
        }
    }
}

async fn make_repository(root: PathBuf) -> anyhow::Result<()> {
    blocking(move || {
        let mut shell = Command::new("sh");
        shell.args(["-c", &repository_script()]).current_dir(root);
        let output = shell.stdin(Stdio::null()).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "no repository: {complaint}");
        Ok(())
    })
    .await
}

/// The same for everybody: files of about 10 KB, one commit, a change and a new file.
fn repository_script() -> String {
    format!(
        "set -e
        git init -q .
        for i in $(seq 0 {}); do
            seq -f \"let value_$i = another(%g);\" 1 350 >source_$i.rs
        done
        git add -A
        git -c user.name=bench -c user.email=bench@localhost commit -q -m all
        echo changed >>{FILE}
        echo new >new.rs",
        FILES - 1
    )
}
