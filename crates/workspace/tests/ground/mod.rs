//! A workspace, a place for its runner, a service before it; and nothing of them left afterwards.

#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandbank_channel::RunnerClient;
use sandbank_protocol::{CommandSpec, Started};
use sandbank_workspace::service::Service;
use sandbank_workspace::{
    KeyFile, Keys, LocalPlace, LocalSettings, Place, RemotePlace, RemoteSettings,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine; only a failing test waits that long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) const SECRET: &str = "the secret of these tests, 40 characters";

pub(crate) struct Ground {
    directory: tempfile::TempDir,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("root")).unwrap();
        Self { directory }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(crate) fn runner(&self) -> PathBuf {
        self.directory.path().join("runner")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn open(&self) -> LocalPlace {
        LocalPlace::open(LocalSettings::new(self.root(), self.runner())).unwrap()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for pid in processes_of(&self.runner()) {
            for below in descendants(pid) {
                end(below);
            }
            end(pid);
        }
    }
}

fn end(pid: i32) {
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
}

/// Runners that were started in this directory.
fn processes_of(directory: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
    })
    .collect()
}

pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children: Vec<i32> = children
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    let below: Vec<i32> = children.iter().flat_map(|pid| descendants(*pid)).collect();
    [children, below].concat()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Polls until the condition holds.
pub(crate) async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn spec(id: &str, script: &str) -> CommandSpec {
    let spec = serde_json::json!({ "id": id, "argv": ["bash", "-c", script] });
    serde_json::from_value(spec).unwrap()
}

/// The command's whole output, until it has ended.
pub(crate) async fn output_of(client: &RunnerClient, started: &Started) -> Vec<u8> {
    let mut output = client.output(&started.status.id, 0, true).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(frame) = output.next().await.unwrap() {
        if let sandbank_protocol::Frame::Output { data: more, .. } = frame {
            bytes.extend_from_slice(&more);
        }
    }
    bytes
}

pub(crate) fn keys(secret: &str) -> Arc<KeyFile> {
    Arc::new(KeyFile::fixed(Keys::parse(secret).unwrap()))
}

pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    pub(crate) async fn start(place: Arc<dyn Place>, keys: Arc<KeyFile>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, place, keys)
    }

    pub(crate) fn on(listener: TcpListener, place: Arc<dyn Place>, keys: Arc<KeyFile>) -> Self {
        let address = listener.local_addr().unwrap();
        let service = Service::new(place, keys, None).unwrap();
        let stop = CancellationToken::new();
        let told = stop.clone();
        let task = tokio::spawn(async move { service.serve(listener, told).await });
        Self { address, stop, task }
    }

    pub(crate) fn settings(&self) -> RemoteSettings {
        RemoteSettings::new(format!("http://{}", self.address))
    }

    pub(crate) fn place(&self, secret: &str) -> RemotePlace {
        RemotePlace::new(&self.settings(), keys(secret)).unwrap()
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}
