//! The real runner binary on a Unix socket, with a workspace and a canary outside of it.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unsafe_code, reason = "killing by number needs a raw system call")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sandbank_channel::RunnerClient;
use sandbank_protocol::RunnerConfig;
use tokio::net::UnixStream;

/// Long enough for a loaded machine; only a failing test waits that long.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) const CANARY: &[u8] = b"the canary sings outside";

pub(crate) struct LiveRunner {
    directory: tempfile::TempDir,
    child: Child,
}

impl LiveRunner {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(configure: impl FnOnce(&mut RunnerConfig)) -> Self {
        Self::start_by(&mut Command::new(env!("CARGO_BIN_EXE_runner")), configure)
    }

    /// By a program that becomes the runner.
    pub(crate) fn start_by(
        program: &mut Command,
        configure: impl FnOnce(&mut RunnerConfig),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        std::fs::write(directory.path().join("canary"), CANARY).unwrap();
        let mut config = RunnerConfig {
            workspace: directory.path().join("workspace").to_str().unwrap().to_owned(),
            workspace_aliases: vec!["/workspace".into()],
            ..RunnerConfig::default()
        };
        configure(&mut config);
        let mut child = program
            .args(["serve", "--ready", "--listen"])
            .arg(directory.path().join("runner.sock"))
            .args(["--config", &serde_json::to_string(&config).unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut ready).unwrap();
        assert_eq!(ready.trim_end(), r#"{"ready":true}"#);
        Self { directory, child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("runner.sock")
    }

    /// A path in the workspace as the host sees it.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    pub(crate) fn canary(&self) -> PathBuf {
        self.directory.path().join("canary")
    }

    pub(crate) async fn client(&self) -> RunnerClient {
        let stream = UnixStream::connect(self.socket()).await.unwrap();
        RunnerClient::connect(stream).await.unwrap().0
    }

    /// Names in a directory of the workspace, temporary files included.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.inside(path)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for LiveRunner {
    fn drop(&mut self) {
        // While the runner lives, everything it started is its descendant.
        for pid in descendants(self.child.id()) {
            // SAFETY: kill takes plain integers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn descendants(pid: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children: Vec<i32> = children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    let below: Vec<i32> = children.iter().flat_map(|pid| descendants(*pid as u32)).collect();
    [children, below].concat()
}

/// Polls until the condition holds.
pub(crate) async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
