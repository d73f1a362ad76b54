//! A workspace on another machine, and a way to it that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_protocol::CommandState;
use sandbank_test_support::{Pty, wait_for};
use sandbank_workspace::service::Service;
use sandbank_workspace::{
    KeyFile, Keys, LocalPlace, LocalSettings, Place, RemotePlace, RemoteSettings,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::world::World;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace service, and a way to it that can be cut.
pub(crate) struct Far {
    pub(crate) local: Arc<LocalPlace>,
    keys: Arc<KeyFile>,
    service: SocketAddr,
    way: SocketAddr,
    carrying: JoinHandle<()>,
    /// Connections that led nowhere.
    refused: Arc<AtomicUsize>,
    _root: tempfile::TempDir,
}

impl Far {
    pub(crate) async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("workspace")).unwrap();
        let (directory, runner) = (root.path().join("workspace"), root.path().join("runner"));
        let local = Arc::new(LocalPlace::open(LocalSettings::new(directory, runner)).unwrap());
        let keys = Arc::new(KeyFile::fixed(Keys::parse(&"s".repeat(40)).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = listener.local_addr().unwrap();
        let serving = Service::new(local.clone(), keys.clone(), None).unwrap();
        tokio::spawn(async move { serving.serve(listener, CancellationToken::new()).await });
        let way = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = way.local_addr().unwrap();
        let refused = Arc::default();
        let carrying = tokio::spawn(carry(way, Some(service), Arc::clone(&refused)));
        Self { local, keys, service, way: address, carrying, refused, _root: root }
    }

    /// Cuts what is carried; new connections are, or lead nowhere.
    pub(crate) async fn carry(&mut self, is_open: bool) {
        self.carrying.abort();
        let _ = (&mut self.carrying).await;
        let listener = TcpListener::bind(self.way).await.unwrap();
        let to = is_open.then_some(self.service);
        self.carrying = tokio::spawn(carry(listener, to, self.refused.clone()));
    }

    /// How many connections led nowhere.
    pub(crate) fn tries(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    pub(crate) async fn was_tried(&self) {
        let refused = || async { self.tries() > 0 };
        wait_for("somebody finds it away", PATIENCE, refused).await.unwrap();
    }

    pub(crate) async fn world(&self, window: &str) -> World {
        let url = format!("http://{}", self.way);
        let place = RemotePlace::new(&RemoteSettings::new(&url), self.keys.clone()).unwrap();
        let settings = [
            ("workspace.mode", "remote"),
            ("workspace.service_url", url.as_str()),
            ("workspace.service_secret_file", "/nowhere"),
            ("workspace.pty_shell_command", "bash,--norc,--noprofile"),
            ("workspace.pty_window_seconds", window),
        ];
        World::with_workspace(&settings, Arc::new(place)).await
    }

    pub(crate) async fn has_terminal(&self) -> bool {
        let commands = self.local.client().await.unwrap().commands().await.unwrap();
        commands.iter().any(|command| matches!(command.state, CommandState::Running))
    }

    /// Ends the runner, which would outlive the test.
    pub(crate) async fn end(self) {
        self.local.stop().await.unwrap();
    }

    pub(crate) async fn loses_its_terminal(self) {
        let is_gone = || async { !self.has_terminal().await };
        wait_for("nobody's terminal is ended", PATIENCE, is_gone).await.unwrap();
        self.end().await;
    }
}

/// Of a test that failed.
impl Drop for Far {
    fn drop(&mut self) {
        self.carrying.abort();
        let pid = self.local.pid().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

async fn carry(listener: TcpListener, to: Option<SocketAddr>, refused: Arc<AtomicUsize>) {
    let mut carried = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let Some(to) = to else {
            refused.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        carried.spawn(async move {
            let mut far = TcpStream::connect(to).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

pub(crate) async fn terminal(world: &World) -> Pty {
    let url = format!("http://127.0.0.1:{}", world.address.port());
    let mut pty = Pty::open(&url, &world.token, "provider=shell").await.unwrap();
    assert_eq!(pty.frame().await.unwrap()["type"], "session");
    pty
}
