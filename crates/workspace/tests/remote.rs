//! A workspace on another machine: the same as one here, and every way in which it can be missed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod false_service;
mod ground;

use std::sync::Arc;
use std::time::Duration;

use false_service::{FalseService, Says};
use ground::{Ground, SECRET, Serving, keys, output_of, spec};
use sandbank_channel::{ByteRange, ChannelError, RunnerClient, full_body};
use sandbank_protocol::{MkdirRequest, MoveRequest, PtySize, SignalRequest};
use sandbank_workspace::{
    BreakerState, Mode, Place, PlaceCalls, PlaceError, PlaceErrorKind, PlaceState, RemoteNames,
    RemotePlace, RemoteSettings,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Short, since what is tested never answers.
const PATIENCE: Duration = Duration::from_millis(300);

fn place_at(url: String) -> RemotePlace {
    let settings = RemoteSettings { patience: PATIENCE, ..RemoteSettings::new(url) };
    RemotePlace::new(&settings, keys(SECRET)).unwrap()
}

async fn once(place: &RemotePlace) -> PlaceError {
    match place.client().await {
        Ok(held) => held.stat("a").await.err().unwrap().into(),
        Err(error) => error,
    }
}

/// Times and process numbers differ.
fn comparable<T: serde::Serialize>(answer: Result<T, ChannelError>) -> Value {
    match answer {
        Ok(answer) => {
            let mut value = serde_json::to_value(answer).unwrap();
            strip(&mut value);
            value
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !name.contains("_ms") && !name.contains("time") && name != "pid" && name != "tag"
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The same work on any runner, and everything that it answered.
async fn work(client: &RunnerClient) -> Vec<Value> {
    let mut said = Vec::new();
    let large = vec![b'z'; 3 << 20];
    said.push(comparable(client.write_file("dir/a.txt", Some(0o640), full_body("hello")).await));
    said.push(comparable(client.write_file("large", None, full_body(large.clone())).await));
    said.push(comparable(client.write_file_at("dir/a.txt", 5, full_body(" there")).await));
    said.push(comparable(client.stat("dir/a.txt").await));
    said.push(comparable(client.stat("missing").await));
    said.push(comparable(client.stat("../outside").await));
    said.push(comparable(client.list("dir").await));
    let made = MkdirRequest { path: "sub".into(), parents: true };
    said.push(comparable(client.mkdir(&made).await));
    let moved = MoveRequest { from: "dir/a.txt".into(), to: "sub/b.txt".into(), overwrite: false };
    said.push(comparable(client.rename(&moved).await));
    let range = ByteRange { offset: 6, length: Some(3) };
    let mut file = client.read_file("sub/b.txt", range).await.unwrap();
    said.push(json!(String::from_utf8(file.chunk().await.unwrap().unwrap().to_vec()).unwrap()));
    let mut file = client.read_file("large", ByteRange::default()).await.unwrap();
    let mut read = Vec::new();
    while let Some(chunk) = file.chunk().await.unwrap() {
        read.extend_from_slice(&chunk);
    }
    assert!(read == large, "a large file came back as {} bytes", read.len());
    let started = client.start(&spec("one", "echo out; echo err >&2; exit 3")).await.unwrap();
    said.push(json!(output_of(client, &started).await.len()));
    said.push(comparable(client.wait(&started.status.id).await));
    // Says nothing before it is told something: the answer to the resize says how much it has said.
    let mut terminal = spec("two", "read line; echo got $line; stty size; exit 0");
    terminal.pty = Some(PtySize { rows: 10, cols: 40 });
    let started = client.start(&terminal).await.unwrap();
    let id = started.status.id.clone();
    said.push(comparable(client.resize(&id, PtySize { rows: 20, cols: 50 }).await));
    let mut output = client.output(&id, 0, true).await.unwrap();
    said.push(comparable(client.stdin(&id, 0, false, full_body("word\n")).await));
    let mut ended = false;
    let mut text = Vec::new();
    while let Some(frame) = output.next().await.unwrap() {
        match frame {
            sandbank_protocol::Frame::Output { data, .. } => text.extend_from_slice(&data),
            sandbank_protocol::Frame::Ended { .. } => ended = true,
            _ => {}
        }
    }
    let text = String::from_utf8(text).unwrap();
    assert!(ended && text.contains("got word") && text.contains("20 50"), "{text}");
    let started = client.start(&spec("three", "sleep 1000")).await.unwrap();
    let kill = SignalRequest { signal: 9, by: "a test".into(), tree: true };
    client.signal(&started.status.id, &kill).await.unwrap();
    said.push(comparable(client.wait(&started.status.id).await));
    said.push(comparable(client.remove("dir", true).await.map(|()| "gone")));
    said.push(comparable(client.remove("dir", true).await.map(|()| "gone")));
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_work_has_the_same_answers_here_and_on_another_machine() {
    let (here, there) = (Ground::new(), Ground::new());
    let local = here.open();
    let behind = Arc::new(there.open());
    let serving = Serving::start(behind.clone(), keys(SECRET)).await;
    let remote = serving.place(SECRET);
    let ours = work(&local.client().await.unwrap()).await;
    let theirs = work(&remote.client().await.unwrap()).await;
    assert_eq!(ours, theirs);
    assert_eq!((local.mode(), remote.mode()), (Mode::Local, Mode::Remote));
    assert_eq!(remote.root().await.unwrap(), there.root().display().to_string());
    let health = remote.health().await;
    assert_eq!((health.state, health.breaker), (PlaceState::Healthy, Some(BreakerState::Closed)));
    // A tunnel to a port of that machine is not part of a workspace.
    let tunnel = remote.client().await.unwrap().tunnel(80).await.err().unwrap();
    assert_eq!(PlaceError::from(tunnel).kind(), PlaceErrorKind::Forbidden);
    let large = full_body(vec![0; (10 << 20) + 1]);
    let refused =
        remote.client().await.unwrap().write_file("large", None, large).await.unwrap_err();
    assert!(refused.to_string().contains("in pieces"), "{refused}");
    serving.stop().await;
    behind.stop().await.unwrap();
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_clock_version_and_path_are_told_apart() {
    let ground = Ground::new();
    let behind = Arc::new(ground.open());
    let serving = Serving::start(behind.clone(), keys(SECRET)).await;
    let wrong = serving.place(&"w".repeat(40));
    let error = once(&wrong).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::Auth, 502));
    assert!(error.to_string().contains("does not accept our secret"), "{error}");
    assert!(!format!("{error} {error:?}").contains("www"), "{error:?}");
    let health = wrong.health().await;
    assert_eq!(health.wrong.unwrap().kind, PlaceErrorKind::Auth);
    assert_eq!(
        health.breaker,
        Some(BreakerState::Closed),
        "it is there, and only our secret is wrong"
    );
    for (off, says) in [(-500, "behind"), (500, "ahead of")] {
        let settings = RemoteSettings { clock_off_seconds: off, ..serving.settings() };
        let error = once(&RemotePlace::new(&settings, keys(SECRET)).unwrap()).await;
        assert_eq!(error.kind(), PlaceErrorKind::Auth);
        assert!(
            error.to_string().contains(says) && error.next_step().contains("clocks"),
            "{error}"
        );
    }
    let below = RemoteSettings::new(format!("http://{}/below", serving.address));
    let error = once(&RemotePlace::new(&below, keys(SECRET)).unwrap()).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::BadPath, 502), "{error}");
    let other = FalseService::start(Says::Version("9.0.0")).await;
    let error = once(&place_at(other.url())).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::Version, 502));
    assert!(error.to_string().contains("9.0.0"), "{error}");
    serving.stop().await;
    behind.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_workspace_service_is_told_and_nothing_of_its_answer_gets_further() {
    for (says, kind, status) in [
        (Says::Status(404), PlaceErrorKind::BadPath, 502),
        (Says::Status(200), PlaceErrorKind::BadPath, 502),
        (Says::Status(401), PlaceErrorKind::Auth, 502),
        (Says::Status(500), PlaceErrorKind::BadGateway, 502),
        (Says::Status(503), PlaceErrorKind::Unreachable, 503),
        (Says::Status(504), PlaceErrorKind::TimedOut, 504),
        (Says::Redirect, PlaceErrorKind::BadPath, 502),
        (Says::TooMuch, PlaceErrorKind::BadPath, 502),
        (Says::Nothing, PlaceErrorKind::TimedOut, 504),
    ] {
        let service = FalseService::start(says).await;
        let error = once(&place_at(service.url())).await;
        assert_eq!((error.kind(), error.status()), (kind, status), "{says:?}: {error}");
        assert!(!format!("{error:?}").contains(false_service::PRIVATE), "{error:?}");
        assert_eq!(service.asked(), 1, "{says:?} was asked again, or somebody else was");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_speaks_another_protocol_is_a_wrong_address_and_what_says_nothing_is_away() {
    for (says, kind) in [
        (&b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"[..], PlaceErrorKind::BadPath),
        (b"\x15\x03\x03\x00\x02\x02\x46", PlaceErrorKind::BadPath),
        (b"<!DOCTYPE HTML>", PlaceErrorKind::BadPath),
        (b"", PlaceErrorKind::Unreachable),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            stream.write_all(says).await.unwrap();
            stream.shutdown().await.unwrap();
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        });
        let error = once(&place_at(url)).await;
        assert_eq!(error.kind(), kind, "{:?}: {error}", String::from_utf8_lossy(says));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_no_answer() {
    let service = FalseService::start(Says::HelloThenTooMuch).await;
    let error = once(&place_at(service.url())).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::BadGateway, 502), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_reach_its_runner_is_asked_again_and_then_said() {
    let ground = Ground::new();
    let behind = Arc::new(ground.open());
    let serving = Serving::start(behind.clone(), keys(SECRET)).await;
    let remote = serving.place(SECRET);
    let ask = || remote.run(|client| async move { client.list(".").await });
    ask().await.unwrap();
    behind.stop().await.unwrap();
    std::fs::rename(ground.root(), ground.path("away")).unwrap();
    let error = ask().await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::Unreachable, 503), "{error}");
    // And when it is there again, the next call works.
    std::fs::rename(ground.path("away"), ground.root()).unwrap();
    ask().await.unwrap();
    serving.stop().await;
    behind.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_refused_opens_the_breaker_which_is_seen() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let place = place_at(format!("http://{address}"));
    let error = once(&place).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::Unreachable, 503), "{error}");
    assert_eq!(place.breaker(), BreakerState::Closed);
    // Calls with their repetitions; failures of the same second count as one.
    let mut calls = 0;
    while place.breaker() == BreakerState::Closed {
        calls += 1;
        assert!(calls < 6, "it never opens");
        place.run(|client| async move { client.list(".").await }).await.unwrap_err();
    }
    assert_eq!(place.breaker().name(), "open");
    let error = once(&place).await;
    assert_eq!((error.kind(), error.status()), (PlaceErrorKind::BreakerOpen, 503), "{error}");
    let health = place.health().await;
    assert_eq!(health.state, PlaceState::Unhealthy);
    assert!(matches!(health.breaker, Some(BreakerState::Open { .. })), "{health:?}");
    assert_eq!(health.wrong.unwrap().kind, PlaceErrorKind::BreakerOpen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_told_from_one_that_ended_and_goes_on_where_it_was() {
    let ground = Ground::new();
    let behind = Arc::new(ground.open());
    let serving = Serving::start(behind.clone(), keys(SECRET)).await;
    let wire = false_service::Wire::to(serving.address).await;
    let place = place_at(wire.url());
    let client = place.client().await.unwrap();
    let script = "for i in $(seq 2000); do echo line $i; done; read x; echo last";
    let mut spec = spec("cut", script);
    spec.stdin = sandbank_protocol::StdinMode::Open;
    let started = client.start(&spec).await.unwrap();
    let id = started.status.id.clone();
    let mut output = client.output(&id, 0, true).await.unwrap();
    let first = output.next().await.unwrap().unwrap();
    wire.cut();
    let mut text = Vec::new();
    let mut after = 0;
    let mut take = |frame: sandbank_protocol::Frame, after: &mut u64| {
        *after = frame.seq();
        if let sandbank_protocol::Frame::Output { data, .. } = frame {
            text.extend_from_slice(&data);
        }
    };
    take(first, &mut after);
    loop {
        match output.next().await {
            Ok(Some(frame)) => take(frame, &mut after),
            Ok(None) => panic!("a stream that was cut looks like one that ended"),
            Err(error) => break assert!(error.is_broken(), "{error}"),
        }
    }
    let held = place.client_after(client.serial()).await.unwrap();
    held.stdin(&id, 0, true, full_body("x\n")).await.unwrap();
    let mut output = held.output(&id, after, true).await.unwrap();
    while let Some(frame) = output.next().await.unwrap() {
        take(frame, &mut after);
    }
    let expected: String =
        (1..=2000).map(|i| format!("line {i}\n")).chain(["last\n".to_owned()]).collect();
    assert!(String::from_utf8(text).unwrap() == expected, "bytes were lost or came twice");
    serving.stop().await;
    behind.stop().await.unwrap();
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_one_line_with_a_fix() {
    let names = RemoteNames { url: "W_URL", allowed: "W_ALLOWED", authorities: "W_AUTHORITIES" };
    let lines = |url: &str, allowed: Option<&str>, authorities: Option<&str>| -> Vec<String> {
        let mut settings =
            RemoteSettings { allowed: allowed.map(str::to_owned), ..RemoteSettings::new(url) };
        settings.tls.authorities = authorities.map(Into::into);
        settings.problems(&names).iter().map(ToString::to_string).collect()
    };
    assert_eq!(lines("http://box:9000", Some("box:9000"), None), Vec::<String>::new());
    for (url, allowed, authorities, says) in [
        ("box:9000", None, None, "W_URL: "),
        ("http://me:hunter2@box:9000", None, None, "a user or password"),
        ("http://box:9000", Some("other:9000"), None, "W_ALLOWED: "),
        ("https://box:9000", None, Some("/nowhere/ca.pem"), "W_AUTHORITIES: "),
        ("https://box:9000", None, Some("/dev/null"), "it holds no certificate"),
    ] {
        let lines = lines(url, allowed, authorities);
        assert!(
            lines.len() == 1 && lines[0].contains(says) && lines[0].contains("; "),
            "{lines:?}"
        );
        assert!(!lines[0].contains("hunter2"), "{lines:?}");
    }
}
