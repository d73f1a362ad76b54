//! Sessions of a workspace that was away when their daemon began, or when their time was over.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process};
use sandbank_protocol::CommandState;
use sandbank_test_support::{Pty, wait_for};
use sandbank_workspace::service::Service;
use sandbank_workspace::{
    Held, KeyFile, Keys, LocalPlace, LocalSettings, Mode, Place, PlaceError, PlaceHealth,
    RemotePlace, RemoteSettings, Retries,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace service, and a way to it that can be cut.
struct Far {
    local: Arc<LocalPlace>,
    keys: Arc<KeyFile>,
    service: SocketAddr,
    way: SocketAddr,
    carrying: JoinHandle<()>,
    /// Connections that led nowhere.
    refused: Arc<AtomicUsize>,
    _root: tempfile::TempDir,
}

impl Far {
    async fn start() -> Self {
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
        let carrying = tokio::spawn(carry(way, Some(service), Arc::default()));
        let refused = Arc::default();
        Self { local, keys, service, way: address, carrying, refused, _root: root }
    }

    /// Cuts what is carried; new connections are, or lead nowhere.
    async fn carry(&mut self, is_open: bool) {
        self.carrying.abort();
        let _ = (&mut self.carrying).await;
        let listener = TcpListener::bind(self.way).await.unwrap();
        let to = is_open.then_some(self.service);
        self.carrying = tokio::spawn(carry(listener, to, self.refused.clone()));
    }

    async fn was_tried(&self) {
        let refused = || async { self.refused.load(Ordering::SeqCst) > 0 };
        wait_for("somebody finds it away", PATIENCE, refused).await.unwrap();
    }

    async fn world(&self, window: &str) -> World {
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

    async fn has_terminal(&self) -> bool {
        let commands = self.local.client().await.unwrap().commands().await.unwrap();
        commands.iter().any(|command| matches!(command.state, CommandState::Running))
    }

    async fn loses_its_terminal(self) {
        let is_gone = || async { !self.has_terminal().await };
        wait_for("nobody's terminal is ended", PATIENCE, is_gone).await.unwrap();
        self.local.stop().await.unwrap();
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

async fn terminal(world: &World) -> Pty {
    let url = format!("http://127.0.0.1:{}", world.address.port());
    let mut pty = Pty::open(&url, &world.token, "provider=shell").await.unwrap();
    assert_eq!(pty.frame().await.unwrap()["type"], "session");
    pty
}

#[tokio::test]
async fn sessions_of_a_workspace_that_was_away_at_the_start_are_found_when_it_is_back() {
    let mut far = Far::start().await;
    let earlier = far.world("86400").await;
    drop(terminal(&earlier).await);
    earlier.shutdown.drain();
    earlier.server.await.unwrap().unwrap();
    assert!(far.has_terminal().await);
    far.carry(false).await;
    // Nobody ever asks this daemon for a session.
    let _world = far.world("0").await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}

#[tokio::test]
async fn a_session_whose_time_is_over_while_its_workspace_is_away_ends_when_it_is_back() {
    let mut far = Far::start().await;
    let world = far.world("1").await;
    let pty = terminal(&world).await;
    assert!(far.has_terminal().await);
    drop(pty);
    far.carry(false).await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}

/// A directory here whose callers can be made to wait.
struct Slow {
    local: Arc<LocalPlace>,
    state: watch::Sender<Answers>,
    /// Who came while it was not to be had, and in which state.
    came: Mutex<Vec<Answers>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    AtOnce,
    /// With the next state whoever waits is refused.
    Refusal,
    /// With the next state whoever waits is served.
    Later,
}

impl Slow {
    fn came(&self, state: Answers) -> usize {
        self.came.lock().unwrap().iter().filter(|came| **came == state).count()
    }
}

#[async_trait]
impl Place for Slow {
    async fn client_after(&self, broken: u64) -> Result<Held, PlaceError> {
        let mut state = self.state.subscribe();
        let came = *state.borrow_and_update();
        if came != Answers::AtOnce {
            self.came.lock().unwrap().push(came);
            state.wait_for(|now| *now != came).await.unwrap();
        }
        match came {
            Answers::Refusal => Err(PlaceError::Unreachable("it is away".to_owned())),
            Answers::AtOnce | Answers::Later => self.local.client_after(broken).await,
        }
    }

    async fn health(&self) -> PlaceHealth {
        self.local.health().await
    }

    async fn root(&self) -> Result<String, PlaceError> {
        self.local.root().await
    }

    fn mode(&self) -> Mode {
        self.local.mode()
    }

    fn retries(&self) -> Retries {
        self.local.retries()
    }
}

#[tokio::test]
async fn however_many_sessions_are_lost_sight_of_one_looks_for_them() {
    let far = Far::start().await;
    let (local, state) = (far.local.clone(), watch::Sender::new(Answers::AtOnce));
    let place = Arc::new(Slow { local, state, came: Mutex::default() });
    let settings = [
        ("workspace.mode", "local"),
        ("workspace.root", "/nowhere"),
        ("workspace.pty_shell_command", "bash,--norc,--noprofile"),
        ("workspace.pty_window_seconds", "0"),
    ];
    let world = World::with_workspace(&settings, place.clone()).await;
    let terminals = [terminal(&world).await, terminal(&world).await, terminal(&world).await];
    place.state.send_replace(Answers::Refusal);
    drop(terminals);
    let all = || async { place.came(Answers::Refusal) == 3 };
    wait_for("each is to be ended", PATIENCE, all).await.unwrap();
    place.state.send_replace(Answers::Later);
    let any = || async { place.came(Answers::Later) > 0 };
    wait_for("somebody looks for them", PATIENCE, any).await.unwrap();
    // Whoever else looks has its turn before this is answered: there is one thread.
    assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
    assert_eq!(place.came(Answers::Later), 1);
    place.state.send_replace(Answers::AtOnce);
    far.loses_its_terminal().await;
}
