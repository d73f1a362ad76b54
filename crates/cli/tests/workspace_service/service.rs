//! A workspace service as a process, on a directory and a port of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{free_port, wait_for};
use sandbank_workspace::{KeyFile, RemotePlace, RemoteSettings};

use super::{LIMIT, SANDBANK};

pub(crate) const SECRET: &str = "the secret of these tests, 40 characters";

pub(crate) struct Service {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) port: u16,
    pub(crate) arguments: Vec<String>,
    pub(crate) child: Option<Child>,
}

impl Service {
    pub(crate) fn prepare() -> Self {
        let directory = tempfile::Builder::new().prefix("sandbank-service-").tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        let service =
            Self { directory, port: free_port().unwrap(), arguments: Vec::new(), child: None };
        service.write_secret(SECRET);
        service
    }

    pub(crate) async fn start() -> Self {
        let mut service = Self::prepare();
        service.launch().await;
        service
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write_secret(&self, text: &str) {
        fs::write(self.path("secret"), text).unwrap();
        fs::set_permissions(self.path("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(SANDBANK);
        command
            .arg("workspace-service")
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .arg("--root")
            .arg(self.path("root"))
            .arg("--secret-file")
            .arg(self.path("secret"))
            .arg("--data-dir")
            .arg(self.path("data"))
            .args(&self.arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run_with(&self, word: &str) -> Output {
        self.command().arg(word).output().unwrap()
    }

    pub(crate) async fn launch(&mut self) {
        let log = fs::File::options().append(true).create(true).open(self.path("log")).unwrap();
        self.child = Some(self.command().stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let port = self.port;
        let up = wait_for("the service listens", LIMIT, || async move {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        });
        up.await.unwrap_or_else(|error| panic!("{error}: {}", self.log()));
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn kill_9(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().unwrap().id();
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    }

    pub(crate) fn remote(&self) -> RemotePlace {
        let keys = Arc::new(KeyFile::open(&self.path("secret")).unwrap());
        RemotePlace::new(&RemoteSettings::new(format!("http://127.0.0.1:{}", self.port)), keys)
            .unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.arguments.clear();
        self.write_secret(SECRET);
        let _ = self.run_with("--stop-runner");
    }
}
