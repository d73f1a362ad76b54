//! The program `sandbank workspace-service`: killed, started again, told to stop, and over TLS; and
//! `sandbank serve` before it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod service;
mod start;
mod tls;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use sandbank_protocol::{CommandSpec, Frame};
use sandbank_test_support::{free_port, wait_for};
use sandbank_workspace::{
    KeyFile, Place, PlaceCalls, PlaceErrorKind, PlaceState, RemotePlace, RemoteSettings,
};

use service::{SECRET, Service};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const LIMIT: Duration = Duration::from_secs(30);

fn spec(id: &str, script: &str) -> CommandSpec {
    let spec = serde_json::json!({ "id": id, "argv": ["bash", "-c", script] });
    serde_json::from_value(spec).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_of_the_service_loses_no_command_and_no_line() {
    const LINES: u64 = 300;
    let mut service = Service::start().await;
    let place = service.remote();
    let script = format!("for i in $(seq {LINES}); do echo line $i; sleep 0.01; done; exit 42");
    let spec = spec("survivor", &script);
    let (id, wanted) = (spec.id.clone(), &spec);
    let start = |client: sandbank_channel::RunnerClient| async move { client.start(wanted).await };
    let started = place.run(start).await.unwrap();
    let (mut text, mut after, mut kills) = (Vec::new(), 0, 0);
    let ending = 'reading: loop {
        let (asked, id) = (after, &id);
        let output = place.run(|client| async move { client.output(id, asked, true).await });
        let mut output = output.await.unwrap();
        loop {
            match output.next().await {
                Ok(Some(frame)) => {
                    after = frame.seq();
                    match frame {
                        Frame::Output { data, .. } => text.extend_from_slice(&data),
                        Frame::Ended { ending, .. } => break 'reading ending,
                        _ => {}
                    }
                }
                Ok(None) => panic!("a stream ended without the command's ending"),
                Err(_) => break,
            }
            if text.len() > 500 * (kills + 1) && kills < 3 {
                kills += 1;
                service.kill_9();
                service.launch().await;
            }
        }
    };
    let expected: String = (1..=LINES).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), expected, "every line exactly once");
    let ending: sandbank_protocol::Ending = serde_json::from_slice(&ending).unwrap();
    assert_eq!((ending.exit_code(), kills), (Some(42), 3));
    let again = place.run(start).await.unwrap();
    assert!(again.attached && again.status.pid == started.status.pid, "it ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_with_kills_of_the_service_between_lose_none_that_may_be_repeated() {
    const CALLS: usize = 1_000;
    const KILLS: usize = 8;
    let mut service = Service::start().await;
    fs::write(service.path("root/a"), "abc").unwrap();
    let place = Arc::new(service.remote());
    let made = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let (place, made) = (place.clone(), made.clone());
            tokio::spawn(async move {
                while made.fetch_add(1, Ordering::SeqCst) < CALLS {
                    let name = format!("file-{worker}");
                    let name = &name;
                    let body = "x".repeat(1_000);
                    let body = &body;
                    place
                        .run(|client| async move {
                            let body = sandbank_channel::full_body(body.clone());
                            client.write_file(name, None, body).await
                        })
                        .await
                        .map_err(|error| format!("write: {error}"))?;
                    let stat = place.run(|client| async move { client.stat("a").await });
                    let stat = stat.await.map_err(|error| format!("stat: {error}"))?;
                    assert_eq!(stat.size, 3);
                }
                Ok::<(), String>(())
            })
        })
        .collect();
    for kill in 1..=KILLS {
        let reached = || async { made.load(Ordering::SeqCst) >= kill * CALLS / (KILLS + 1) };
        wait_for("calls are made", LIMIT * 2, reached).await.unwrap();
        service.kill_9();
        service.launch().await;
    }
    for worker in workers {
        let lost = worker.await.unwrap();
        assert_eq!(lost, Ok(()), "{}", service.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_stops_when_told_rereads_its_secret_and_is_alone_in_its_directory() {
    let mut service = Service::start().await;
    let place = service.remote();
    place.client().await.unwrap();
    let occupied = service.port;
    service.port = free_port().unwrap();
    let output = service.command().output().unwrap();
    service.port = occupied;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("another sandbank has the runner"), "{said}");

    let new = "n".repeat(40);
    let old = place;
    service.write_secret(&new);
    service.signal(Signal::HUP);
    let renewed = service.remote();
    wait_for("the new secret is taken", LIMIT, || async {
        renewed.health().await.state == PlaceState::Healthy
    })
    .await
    .unwrap();
    drop(old);
    service.write_secret(SECRET);
    service.signal(Signal::HUP);
    wait_for("the new secret is refused", LIMIT, || async {
        let fixed = KeyFile::fixed(sandbank_workspace::Keys::parse(&"n".repeat(40)).unwrap());
        let settings = RemoteSettings::new(format!("http://127.0.0.1:{}", service.port));
        let place = RemotePlace::new(&settings, Arc::new(fixed)).unwrap();
        place.health().await.wrong.is_some_and(|wrong| wrong.kind == PlaceErrorKind::Auth)
    })
    .await
    .unwrap();

    service.signal(Signal::TERM);
    let mut child = service.child.take().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", service.log());
    assert!(!service.log().contains(SECRET) && !service.log().contains(&new));
    let ended = service.run_with("--stop-runner");
    assert!(ended.status.success());
}

#[test]
fn settings_that_cannot_work_are_refused_with_every_line_at_once() {
    let service = Service::prepare();
    let check = service.run_with("--check");
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    let output = Command::new(SANDBANK)
        .args(["workspace-service", "--root", "/", "--secret-file", "/nowhere"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{said}");
    for line in ["WORKSPACE_ROOT", "the whole machine", "WORKSPACE_SECRET_FILE", "openssl rand"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
