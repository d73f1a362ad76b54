//! A daemon in each of the workspace's modes, and what must not end before it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sandbank_test_support::workspace::Workspace;
use sandbank_test_support::{
    PrivateDocker, SUITE_IMAGE, TestDaemon, free_port, import_suite, skip_over_docker,
    skip_unless_root, wait_for,
};
use sandbank_workspace::{LocalPlace, LocalSettings};

use super::{SANDBANK, TERMINAL};

const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    pub(crate) daemon: TestDaemon,
    directory: tempfile::TempDir,
    service: Option<Child>,
    /// Where the runner of a directory has its files.
    runner: Option<PathBuf>,
    _docker: Option<PrivateDocker>,
}

impl Place {
    pub(crate) async fn local() -> anyhow::Result<Option<Self>> {
        if skip() {
            return Ok(None);
        }
        Self::beside().await.map(Some)
    }

    /// A directory, whatever engine the tests are about: it makes no sandboxes.
    pub(crate) async fn beside() -> anyhow::Result<Self> {
        let directory = directory()?;
        let root = directory.path().join("root");
        let settings =
            [("WORKSPACE_MODE", "local"), ("SANDBANK_WORKSPACE_ROOT", root.to_str().unwrap())];
        let daemon = daemon(&settings).await?;
        let runner = Some(daemon.data_dir().join("workspace-runner"));
        Ok(Self { daemon, directory, service: None, runner, _docker: None })
    }

    /// A sandbox of the engine that the tests are about.
    pub(crate) async fn sandbox() -> anyhow::Result<Self> {
        let daemon = daemon(&[("WORKSPACE_MODE", "sandbox")]).await?;
        let directory = directory()?;
        Ok(Self { daemon, directory, service: None, runner: None, _docker: None })
    }

    /// As a client and whoever works in it see it.
    pub(crate) async fn workspace(&self) -> anyhow::Result<Workspace> {
        let (api, token) = (self.daemon.api()?, self.daemon.token()?);
        match &self.runner {
            Some(_) => {
                let root = self.directory.path().join("root");
                Ok(Workspace::of_directory("local", api, token, root))
            }
            None => Workspace::of_sandbox("sandbox", api, token).await,
        }
    }

    pub(crate) async fn native() -> anyhow::Result<Option<Self>> {
        if skip() {
            return Ok(None);
        }
        let settings = [("WORKSPACE_MODE", "sandbox"), ("SANDBANK_ENGINE", "native")];
        let daemon = daemon(&settings).await?;
        let directory = directory()?;
        Ok(Some(Self { daemon, directory, service: None, runner: None, _docker: None }))
    }

    pub(crate) async fn docker() -> anyhow::Result<Option<Self>> {
        if skip() {
            return Ok(None);
        }
        let Some(docker) = PrivateDocker::start(false)? else { return Ok(None) };
        import_suite(&docker)?;
        let socket = docker.socket().to_string_lossy().into_owned();
        let settings = [
            ("WORKSPACE_MODE", "sandbox"),
            ("SANDBANK_ENGINE", "docker"),
            ("SANDBOXD_DOCKER_SOCKET", &socket),
            ("SANDBANK_DOCKER_IMAGE", SUITE_IMAGE),
        ];
        let daemon = daemon(&settings).await?;
        let directory = directory()?;
        Ok(Some(Self { daemon, directory, service: None, runner: None, _docker: Some(docker) }))
    }

    pub(crate) async fn remote() -> anyhow::Result<Option<Self>> {
        if skip() {
            return Ok(None);
        }
        let directory = directory()?;
        let path = |name: &str| directory.path().join(name);
        fs::write(path("secret"), "the secret of these tests, 40 characters")?;
        fs::set_permissions(path("secret"), PermissionsExt::from_mode(0o600))?;
        let port = free_port()?;
        let service = Command::new(SANDBANK)
            .args(["workspace-service", "--listen", &format!("127.0.0.1:{port}")])
            .arg("--root")
            .arg(path("root"))
            .arg("--secret-file")
            .arg(path("secret"))
            .arg("--data-dir")
            .arg(path("service"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path("log"))?)
            .spawn()?;
        wait_for("the service listens", LIMIT, || async move {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await?;
        let (url, secret) = (format!("http://127.0.0.1:{port}"), path("secret"));
        let settings = [
            ("WORKSPACE_MODE", "remote"),
            ("SANDBANK_WORKSPACE_SERVICE_URL", url.as_str()),
            ("SANDBANK_WORKSPACE_SERVICE_SECRET_FILE", secret.to_str().unwrap()),
        ];
        let daemon = daemon(&settings).await?;
        Ok(Some(Self { daemon, directory, service: Some(service), runner: None, _docker: None }))
    }

    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.daemon.api()?.delete_all().await?;
        self.daemon.terminate().await?;
        if let Some(mut service) = self.service.take() {
            service.kill()?;
            service.wait()?;
            let root = self.directory.path();
            let stopped = Command::new(SANDBANK)
                .args(["workspace-service", "--stop-runner", "--root"])
                .arg(root.join("root"))
                .arg("--secret-file")
                .arg(root.join("secret"))
                .arg("--data-dir")
                .arg(root.join("service"))
                .output()?;
            anyhow::ensure!(stopped.status.success(), "{stopped:?}");
        }
        if let Some(runner) = self.runner.take() {
            let settings = LocalSettings::new(self.directory.path().join("root"), runner);
            LocalPlace::open(settings)?.stop().await?;
        }
        let left = self.daemon.residue()?;
        anyhow::ensure!(left.is_empty(), "left on the host: {left:#?}");
        Ok(())
    }
}

/// Every place is made here, whatever engine other tests are about.
fn skip() -> bool {
    skip_unless_root() || skip_over_docker("each engine has a test of its own here")
}

fn directory() -> anyhow::Result<tempfile::TempDir> {
    let directory = tempfile::Builder::new().prefix("sandbank-modes-").tempdir()?;
    fs::create_dir(directory.path().join("root"))?;
    Ok(directory)
}

async fn daemon(settings: &[(&str, &str)]) -> anyhow::Result<TestDaemon> {
    let own =
        [("SANDBANK_PTY_SHELL_COMMAND", TERMINAL), ("SANDBANK_CHAT_COMMAND", "bash,agent.sh")];
    TestDaemon::start_with(SANDBANK, &[&own, settings].concat()).await
}
