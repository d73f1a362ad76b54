//! A sandbox whose runner was replaced by a hostile one: its callers get clear errors in bounded
//! time, it can still be deleted, and nobody else notices.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbank_test_support::eventually;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use crate::world::{World, refusal};

type Body = BoxBody<Bytes, Infallible>;
type Answer = dyn Fn(&str) -> http::Response<Body> + Send + Sync;

/// Longer than any limit on a runner's answer; a test that gets here hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world with a sandbox whose runner answers with `answer`, and another one that is honest.
struct Betrayed {
    world: World,
    id: String,
    other: String,
    fake: AbortHandle,
}

impl Drop for Betrayed {
    fn drop(&mut self) {
        self.fake.abort();
    }
}

impl Betrayed {
    async fn with(answer: impl Fn(&str) -> http::Response<Body> + Send + Sync + 'static) -> Self {
        let answer: Arc<Answer> = Arc::new(answer);
        let serve = move |stream| {
            let answer = answer.clone();
            let service = service_fn(move |request: http::Request<Incoming>| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(answer(request.uri().path())) }
            });
            let builder = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        };
        Self::taken_over(serve).await
    }

    async fn taken_over(serve: impl Fn(tokio::net::UnixStream) + Send + 'static) -> Self {
        let world = World::start().await;
        let id = world.sandbox().await;
        let other = world.api.create("other").await.unwrap();
        let listener = world.engine.impersonate(&id.parse().unwrap());
        let fake = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream);
            }
        });
        Self { world, id, other, fake: fake.abort_handle() }
    }

    /// What a caller is told; never later than the limits allow.
    async fn refused(&self, method: &str, route: &str, body: Option<Value>) -> (u16, String) {
        let request = self.world.api.request(method, &format!("/v1/sandboxes/{}{route}", self.id));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = tokio::time::timeout(PATIENCE, request.send()).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} {route} hangs")).unwrap();
        let (status, code, body) = refusal(answer).await;
        assert!(body.to_string().len() < 5000, "{body}");
        (status.as_u16(), code)
    }

    /// The honest one works, and the other can be deleted.
    async fn finish(self) {
        let (code, text, _) = self.world.api.run(&self.other, "echo alive").await.unwrap();
        assert_eq!((code, text.as_str()), (0, "alive\n"), "the other sandbox suffers");
        let stop = tokio::time::timeout(PATIENCE, self.world.api.stop(&self.id)).await;
        stop.expect("a hostile sandbox can be stopped").unwrap();
        let route = format!("/v1/sandboxes/{}/post-mortem", self.id);
        let record = self.world.api.call("GET", &route, None).await.unwrap();
        assert!(record.to_string().len() < 256 << 10, "{} bytes", record.to_string().len());
    }
}

fn full(text: impl Into<Bytes>) -> http::Response<Body> {
    http::Response::new(Full::new(text.into()).boxed())
}

fn hello() -> http::Response<Body> {
    full(
        r#"{"protocol":1,"runner_version":"x","epoch":"e","started_at_ms":1,"workspace":"/workspace"}"#,
    )
}

fn status(id: &str) -> String {
    json!({
        "id": id, "argv": ["x".repeat(1 << 20)], "cwd": "c".repeat(1 << 20), "pty": false,
        "state": "ended", "ending": { "kind": "lost", "reason": "r".repeat(1 << 20) },
        "pid": -1, "started_at_ms": u64::MAX, "ended_at_ms": 0, "stdout_bytes": u64::MAX,
        "stderr_bytes": u64::MAX, "dropped_bytes": u64::MAX, "last_seq": u64::MAX,
        "stdin_offset": u64::MAX,
    })
    .to_string()
}

const ROUTES: [(&str, &str); 6] = [
    ("GET", "/commands"),
    ("GET", "/commands/c1"),
    ("GET", "/commands/c1/logs"),
    ("GET", "/files:list"),
    ("GET", "/files:stat?path=a"),
    ("GET", "/files?path=a"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_answers_garbage_is_a_bad_gateway_on_every_route() {
    let betrayed = Betrayed::with(|path| match path {
        "/hello" => hello(),
        _ => full("\u{1b}[31m{\"id\":\n"),
    })
    .await;
    for (method, route) in ROUTES {
        if route.ends_with("/logs") {
            continue;
        }
        let (status, code) = betrayed.refused(method, route, None).await;
        assert_eq!((status, code.as_str()), (502, "runner_failed"), "{method} {route}");
    }
    let body = json!({ "argv": ["true"] });
    let (status, code) = betrayed.refused("POST", "/commands", Some(body)).await;
    assert_eq!((status, code.as_str()), (502, "runner_failed"));
    betrayed.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_hangs_up_or_speaks_nonsense_is_unreachable() {
    let betrayed = Betrayed::taken_over(|mut stream| {
        tokio::spawn(async move { stream.write_all(&[0xff; 4096]).await });
    })
    .await;
    for (method, route) in ROUTES {
        let (status, code) = betrayed.refused(method, route, None).await;
        let expected = ["sandbox_unreachable", "runner_failed"].contains(&code.as_str());
        assert!([502, 503].contains(&status) && expected, "{method} {route}: {status} {code}");
    }
    betrayed.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_with_another_version_or_another_command_is_told_apart() {
    let betrayed = Betrayed::with(|path| match path {
        "/hello" => hello(),
        "/commands" => full(format!("{{\"attached\":false,\"status\":{}}}", status("another"))),
        _ => full(status("another")),
    })
    .await;
    let body = json!({ "argv": ["true"], "commandId": "c1" });
    let (status, code) = betrayed.refused("POST", "/commands", Some(body)).await;
    assert_eq!((status, code.as_str()), (502, "runner_failed"));
    for route in ["/commands/c1", "/commands/c1/wait"] {
        let (status, code) = betrayed.refused("GET", route, None).await;
        assert_eq!((status, code.as_str()), (502, "runner_failed"), "{route}");
    }
    betrayed.finish().await;
}

/// kind, seq, payload; with the length stated as it is.
fn frame(kind: u8, seq: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(seq.to_be_bytes());
    out.extend(0u64.to_be_bytes());
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend(payload);
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ending_and_output_after_the_first_are_not_passed_on() {
    let wire = [
        frame(1, 1, b"one"),
        frame(1, u64::MAX - 1, b"far ahead"),
        frame(1, 2, b"behind"),
        frame(5, u64::MAX, br#"{"kind":"signaled","signal":2147483647}"#),
        frame(5, u64::MAX, br#"{"kind":"exited","code":0}"#),
        frame(1, 3, b"after the end"),
    ]
    .concat();
    let betrayed = Betrayed::with(move |path| match path {
        "/hello" => hello(),
        "/commands/c1/output" => full(wire.clone()),
        _ => full(status("c1")),
    })
    .await;
    let records = betrayed.world.api.logs(&betrayed.id, "c1").await.unwrap();
    let data: Vec<&str> = records.iter().map(|record| record.data.as_str()).collect();
    assert_eq!(data, ["one", "far ahead", ""], "{records:?}");
    assert_eq!(records[2].rest["ending"]["signal"], i32::MAX);
    betrayed.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_cannot_be_break_the_transfer_off() {
    let mut wire = frame(1, 1, b"one");
    let mut huge = frame(1, 2, b"x");
    huge[17..21].copy_from_slice(&u32::MAX.to_be_bytes());
    wire.extend(huge);
    let betrayed = Betrayed::with(move |path| match path {
        "/hello" => hello(),
        "/commands/c1/output" => full(wire.clone()),
        _ => full(status("c1")),
    })
    .await;
    let route = format!("/v1/sandboxes/{}/commands/c1/logs", betrayed.id);
    let read = async { betrayed.world.api.request("GET", &route).send().await?.text().await };
    let text = tokio::time::timeout(PATIENCE, read).await.expect("it does not hang");
    assert!(text.is_err(), "a part was taken for all: {text:?}");
    betrayed.finish().await;
}

/// An answer without end, as fast as it is taken.
fn endless() -> http::Response<Body> {
    const PIECE: Bytes = Bytes::from_static(&[b'['; 64 << 10]);
    let pieces = futures_util::stream::repeat_with(|| Ok(http_body::Frame::data(PIECE)));
    http::Response::new(StreamBody::new(pieces).boxed())
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_end_cost_bounded_memory() {
    let betrayed = Betrayed::with(|path| match path {
        "/hello" => hello(),
        path if path.starts_with("/files") && path != "/files" => endless(),
        "/files" => {
            let mut answer = endless();
            let stat = r#"{"kind":"file","size":5,"mode":420,"modified_ms":0}"#;
            answer.headers_mut().insert("x-sandbank-stat", stat.parse().unwrap());
            answer
        }
        _ => endless(),
    })
    .await;
    let before = resident_bytes();
    for (method, route) in ROUTES {
        if route.starts_with("/files?") || route.ends_with("/logs") {
            continue;
        }
        let (status, _) = betrayed.refused(method, route, None).await;
        assert!([502, 503].contains(&status), "{method} {route}: {status}");
    }
    let route = format!("/v1/sandboxes/{}/files?path=a", betrayed.id);
    let file = betrayed.world.api.request("GET", &route).send().await.unwrap();
    assert_eq!(file.bytes().await.unwrap(), "[[[[[", "exactly as long as it was said to be");
    let grown = eventually("the memory to be given back", PATIENCE, || async {
        let grown = resident_bytes().saturating_sub(before);
        (grown < 256 << 20).then_some(grown)
    });
    grown.await.unwrap();
    betrayed.finish().await;
}
