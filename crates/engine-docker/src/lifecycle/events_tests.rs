//! The feed of events, over a Docker that has nothing, never says anything, and sometimes hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbank_engine::{Engine, InstanceId};
use sandbank_test_support::wait_for;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::limits::EVENTS_QUIET;
use crate::{DockerEngine, DockerSettings};

const SOON: Duration = Duration::from_secs(30);

struct QuietDocker {
    directory: tempfile::TempDir,
    /// Connections.
    open: watch::Receiver<usize>,
    /// Times that it was asked whether it is there, and said so.
    pings: Arc<AtomicUsize>,
    /// Takes requests and answers none, until it comes round.
    hangs: watch::Sender<bool>,
}

impl QuietDocker {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("docker.sock")).unwrap();
        let (tell, open) = watch::channel(0);
        let (hangs, hanging) = watch::channel(false);
        let pings = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&pings);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tell.send_modify(|open| *open += 1);
                let (tell, hanging, counted) = (tell.clone(), hanging.clone(), counted.clone());
                tokio::spawn(async move {
                    // Whoever asked may be gone.
                    let _ = answer(connection, hanging, &counted).await;
                    tell.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { directory, open, pings, hangs }
    }

    async fn engine(&self) -> DockerEngine {
        let mut settings = DockerSettings::new(InstanceId::random());
        let socket = self.directory.path().join("docker.sock");
        settings.host = Some(socket.to_str().unwrap().to_owned());
        DockerEngine::start(settings).await.unwrap()
    }
}

/// One answer for each path.
async fn answer(
    mut connection: UnixStream,
    mut hanging: watch::Receiver<bool>,
    pings: &AtomicUsize,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await?);
    }
    let request = String::from_utf8(request).unwrap();
    let _ = hanging.wait_for(|hangs| !hangs).await;
    let body = match request.split(' ').nth(1).unwrap() {
        "/version" => r#"{"ApiVersion":"1.41"}"#,
        path if path.ends_with("/info") => r#"{"OSType":"linux"}"#,
        path if path.ends_with("/_ping") => {
            pings.fetch_add(1, Ordering::Relaxed);
            "OK"
        }
        path if path.contains("/events") => {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
            connection.write_all(head.as_bytes()).await?;
            // Until the other side closes it.
            connection.read_to_end(&mut Vec::new()).await?;
            return Ok(());
        }
        _ => "[]",
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).await
}

/// Time passes faster than it does, and slower than what is under way between two sockets.
async fn as_time_passes(what: &str, mut condition: impl FnMut() -> bool) {
    let is_there = || {
        let holds = condition();
        async move {
            if !holds {
                time::pause();
                time::advance(EVENTS_QUIET / 10).await;
                time::resume();
            }
            holds
        }
    };
    wait_for(what, SOON, is_there).await.unwrap();
}

struct Warnings(Arc<AtomicUsize>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn an_engine_that_is_dropped_lets_go_of_its_feed() {
    let mut docker = QuietDocker::start();
    let engine = docker.engine().await;
    let settled = time::timeout(SOON, docker.open.wait_for(|open| *open == 1)).await;
    settled.expect("the feed is open, and nothing else").unwrap();
    drop(engine);
    let closed = time::timeout(SOON, docker.open.wait_for(|open| *open == 0)).await;
    closed.expect("it is closed").unwrap();
}

#[tokio::test]
async fn a_docker_that_hangs_is_noticed_and_logged_each_time_and_one_that_is_quiet_is_not() {
    let docker = QuietDocker::start();
    let engine = docker.engine().await;
    let count = Arc::new(AtomicUsize::new(0));
    let warnings = tracing_subscriber::registry().with(Warnings(Arc::clone(&count)));
    let _guard = tracing::subscriber::set_default(warnings);
    let pings = || docker.pings.load(Ordering::Relaxed);
    as_time_passes("it to be asked twice", || pings() >= 2).await;
    assert_eq!((engine.silent(), count.load(Ordering::Relaxed)), (None, 0));
    for outage in 1..=2 {
        docker.hangs.send_replace(true);
        as_time_passes("the silence to be noticed", || engine.silent().is_some()).await;
        assert_eq!(count.load(Ordering::Relaxed), outage);
        docker.hangs.send_replace(false);
        let heard = || async { engine.silent().is_none() };
        wait_for("it to be heard again", SOON, heard).await.unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}
