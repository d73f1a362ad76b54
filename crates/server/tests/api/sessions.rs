//! Sessions through the API, as Sandkasten's clients use them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::multipart::{Form, Part};
use sandbank_test_support::wait_for;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::World;

const SOON: Duration = Duration::from_secs(20);
const NOBODY: &str = "/v1/sessions/0123abcd-0ef";

async fn session(world: &World) -> String {
    let made = world.api.call("POST", "/v1/sessions", Some(json!({}))).await.unwrap();
    format!("/v1/sessions/{}", made["id"].as_str().unwrap())
}

async fn exec(world: &World, session: &str, cmd: &str) -> Value {
    let body = json!({ "cmd": cmd, "timeout_ms": 60_000 });
    world.api.call("POST", &format!("{session}/exec"), Some(body)).await.unwrap()
}

/// Status and code of a refusal, whose body must be of this dialect.
async fn refused(world: &World, method: &str, path: &str, body: Option<Value>) -> (u16, String) {
    let (status, body) = world.api.try_call(method, path, body).await.unwrap();
    let keys = body.as_object().unwrap().keys();
    assert!(keys.clone().all(|k| ["error_code", "message", "details"].contains(&k.as_str())));
    assert!(body["message"].is_string(), "{body}");
    (status, body["error_code"].as_str().unwrap().to_owned())
}

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_session_is_made_looked_at_listed_and_ended() {
    let world = World::start().await;
    let request = json!({ "image": "sandbox-runtime:python", "ttl_seconds": 600 });
    let (status, made) = world.api.try_call("POST", "/v1/sessions", Some(request)).await.unwrap();
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().unwrap();
    assert_eq!((id.len(), &id[8..9]), (12, "-"));
    assert_eq!(
        (&made["image"], &made["status"]),
        (&json!("sandbox-runtime:python"), &json!("running"))
    );
    assert_eq!((&made["acquire_source"], &made["cwd"]), (&json!("cold"), &json!("/workspace")));
    assert!(made["created_at"].as_str().unwrap().ends_with('Z'), "{made}");
    assert!(made["expires_at"].as_str() > made["created_at"].as_str(), "{made}");
    let other = session(&world).await;

    let path = format!("/v1/sessions/{id}");
    let seen = world.api.call("GET", &path, None).await.unwrap();
    assert_eq!((&seen["id"], &seen["status"]), (&made["id"], &made["status"]));
    assert!(seen.get("acquire_source").is_none(), "{seen}");
    let stats = world.api.call("GET", &format!("{path}/stats"), None).await.unwrap();
    assert!(
        stats["memory_limit"].as_u64() > Some(0) && stats["cpu_usage_usec"].is_u64(),
        "{stats}"
    );

    for _ in 0..2 {
        let gone = world.api.call("DELETE", &path, None).await.unwrap();
        assert_eq!(gone, json!({ "ok": true }));
    }
    let list = world.api.call("GET", "/v1/sessions", None).await.unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(format!("/v1/sessions/{}", list[0]["id"].as_str().unwrap()), other, "newest first");
    assert_eq!((&list[1]["id"], &list[1]["status"]), (&made["id"], &json!("destroyed")));
    let body = json!({ "cmd": "true" });
    let answer = refused(&world, "POST", &format!("{path}/exec"), Some(body)).await;
    assert_eq!(answer, code(410, "SESSION_DESTROYED"));
}

#[tokio::test]
async fn callers_mistakes_have_codes_of_their_own() {
    let world = World::start().await;
    let s = session(&world).await;
    let (exec, write) = (format!("{s}/exec"), format!("{s}/fs/write"));
    let long = "x".repeat((1 << 20) + 1);
    for (method, path, body, expected) in [
        ("GET", NOBODY.to_owned(), None, code(404, "SESSION_NOT_FOUND")),
        ("DELETE", NOBODY.to_owned(), None, code(404, "SESSION_NOT_FOUND")),
        ("GET", format!("{NOBODY}/stats"), None, code(404, "SESSION_NOT_FOUND")),
        (
            "POST",
            format!("{NOBODY}/exec"),
            Some(json!({"cmd": "x"})),
            code(404, "SESSION_NOT_FOUND"),
        ),
        (
            "POST",
            format!("{NOBODY}/exec/stream"),
            Some(json!({"cmd": "x"})),
            code(404, "SESSION_NOT_FOUND"),
        ),
        ("GET", format!("{NOBODY}/fs/read?path=a"), None, code(404, "SESSION_NOT_FOUND")),
        ("GET", "/v1/sessions/nonsense".to_owned(), None, code(400, "INVALID_REQUEST")),
        ("GET", "/v1/sessions/x/y/z".to_owned(), None, code(404, "NOT_FOUND")),
        ("PATCH", s.clone(), None, code(405, "METHOD_NOT_ALLOWED")),
        (
            "POST",
            "/v1/sessions".to_owned(),
            Some(json!({"image": "ruby"})),
            code(400, "INVALID_IMAGE"),
        ),
        (
            "POST",
            "/v1/sessions".to_owned(),
            Some(json!({"image": "../x"})),
            code(400, "INVALID_IMAGE"),
        ),
        (
            "POST",
            "/v1/sessions".to_owned(),
            Some(json!({"ttl_seconds": 86_401})),
            code(400, "INVALID_REQUEST"),
        ),
        (
            "POST",
            "/v1/sessions".to_owned(),
            Some(json!({"ttl_seconds": -1})),
            code(400, "INVALID_REQUEST"),
        ),
        (
            "POST",
            "/v1/sessions".to_owned(),
            Some(json!({"workspace_id": "Bad_"})),
            code(400, "INVALID_WORKSPACE"),
        ),
        ("POST", exec.clone(), Some(json!({"cmd": ""})), code(400, "INVALID_REQUEST")),
        ("POST", exec.clone(), Some(json!({"cmd": long})), code(400, "INVALID_REQUEST")),
        (
            "POST",
            exec.clone(),
            Some(json!({"cmd": "x", "timeout_ms": 600_001})),
            code(400, "INVALID_REQUEST"),
        ),
        (
            "POST",
            write.clone(),
            Some(json!({"path": "/etc/x", "text": "x"})),
            code(400, "INVALID_REQUEST"),
        ),
        ("POST", write.clone(), Some(json!({"path": "x"})), code(400, "INVALID_REQUEST")),
        ("POST", format!("{s}/fs/upload"), None, code(400, "INVALID_REQUEST")),
        ("GET", format!("{s}/fs/read?path=none"), None, code(404, "FILE_NOT_FOUND")),
        ("GET", format!("{s}/fs/read?path=../x"), None, code(400, "INVALID_REQUEST")),
        (
            "GET",
            format!("{s}/fs/read?path=a&max_bytes=104857601"),
            None,
            code(400, "INVALID_REQUEST"),
        ),
        ("GET", "/v1/workspaces/none-such/fs".to_owned(), None, code(404, "WORKSPACE_NOT_FOUND")),
        (
            "GET",
            "/v1/workspaces/none-such/fs/read?path=a".to_owned(),
            None,
            code(404, "WORKSPACE_NOT_FOUND"),
        ),
        ("GET", "/v1/workspaces/Bad_/fs".to_owned(), None, code(400, "INVALID_WORKSPACE")),
        ("DELETE", "/v1/workspaces/-".to_owned(), None, code(400, "INVALID_WORKSPACE")),
    ] {
        let answer = refused(&world, method, &path, body).await;
        assert_eq!(answer, expected, "{method} {path}");
    }
    let absent = world.api.call("DELETE", "/v1/workspaces/sandkasten-ws-none-such", None).await;
    assert_eq!(absent.unwrap(), json!({ "ok": true }));
    let anonymous = world.open("GET", "/v1/sessions").header("x-request-id", "r7").send().await;
    let anonymous = anonymous.unwrap();
    assert_eq!(
        (anonymous.status().as_u16(), &anonymous.headers()["x-request-id"]),
        (401, &"r7".parse().unwrap())
    );
    let body: Value = anonymous.json().await.unwrap();
    assert_eq!(
        (&body["error_code"], &body["message"]),
        (&json!("UNAUTHORIZED"), &json!("missing or invalid authorization"))
    );
    let health = world.open("GET", "/healthz").send().await.unwrap();
    assert_eq!(health.json::<Value>().await.unwrap(), json!({ "status": "ok" }));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_with_what_to_do() {
    let world = World::start().await;
    let s = session(&world).await;
    exec(&world, &s, "mkdir -p d").await;
    let workspace = json!({ "path": "d/f", "text": "x" });
    world.api.call("POST", "/v1/workspaces/project/fs/write", Some(workspace)).await.unwrap();
    for (method, path, body, said) in [
        ("POST", "/v1/sessions".to_owned(), Some(json!({ "ttl": 5 })), "did you mean ttl_seconds?"),
        ("POST", "/v1/sessions".to_owned(), Some(json!({ "imag": "base" })), "did you mean image?"),
        ("POST", format!("{s}/exec"), Some(json!({})), "cmd is required"),
        ("POST", format!("{s}/exec/stream"), Some(json!({ "timeout_ms": 5 })), "cmd is required"),
        (
            "POST",
            format!("{s}/exec"),
            Some(json!({ "cmd": "true", "timeout": 5 })),
            "timeout is not a field here; did you mean timeout_ms?",
        ),
        ("POST", format!("{s}/fs/write"), Some(json!({ "text": "x" })), "path is required"),
        ("GET", format!("{s}/fs/read?path=d"), None, "\"d\" is a directory; list it with POST"),
        (
            "GET",
            "/v1/workspaces/project/fs/read?path=d".to_owned(),
            None,
            "is a directory; list it with GET /v1/workspaces/{id}/fs?path=",
        ),
    ] {
        let (status, answer) = world.api.try_call(method, &path, body).await.unwrap();
        assert_eq!((status, &answer["error_code"]), (400, &json!("INVALID_REQUEST")), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(said), "{path}: {answer}");
    }
    let anonymous = world.open("GET", "/v1/sessions").send().await.unwrap();
    let body: Value = anonymous.json().await.unwrap();
    assert!(body["details"]["hint"].as_str().unwrap().contains("SANDKASTEN_API_KEY"), "{body}");
}

#[tokio::test]
async fn a_streamed_command_that_waits_for_its_turn_is_answered_at_once() {
    let world = World::start().await;
    let s = session(&world).await;
    let path = format!("{s}/exec/stream");
    let go = world.data.path().join("go");
    let cmd = format!("echo first; until [ -e {} ]; do sleep 0.01; done", go.display());
    let mut first = Pieces::open(&world, &path, &json!({ "cmd": cmd })).await;
    assert!(first.next().await.contains("first"));
    // The head of its answer is here, so the silence after it is one that heartbeats end.
    let mut second = Pieces::open(&world, &path, &json!({ "cmd": "echo second" })).await;
    std::fs::write(&go, "").unwrap();
    assert!(second.next().await.contains("second"));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_413_in_this_dialect() {
    let world = World::with(&[("server.max_body_bytes", "2048")]).await;
    let body = json!({ "cmd": "x".repeat(4096) });
    let answer = refused(&world, "POST", &format!("{NOBODY}/exec"), Some(body)).await;
    assert_eq!(answer, code(413, "REQUEST_TOO_LARGE"));
}

#[tokio::test]
async fn the_shell_remembers_and_output_is_merged_in_order_and_cleaned() {
    let world = World::start().await;
    let s = session(&world).await;
    exec(&world, &s, "mkdir -p d; cd d; export A=5; f() { echo f$1; }; b=6").await;
    let out = exec(
        &world,
        &s,
        "echo $A $b; f 7; echo err >&2; printf '\\033[1mx\\033[0m\\r\\n\\n\\n'; (exit 3)",
    )
    .await;
    assert_eq!((&out["exit_code"], &out["truncated"]), (&json!(3), &json!(false)), "{out}");
    assert_eq!(out["output"], "5 6\nf7\nerr\nx");
    assert!(out["cwd"].as_str().unwrap().ends_with("/d"), "{out}");
    let raw = json!({ "cmd": "printf '\\033[1mx\\r\\n\\n'", "raw_output": true });
    let raw = world.api.call("POST", &format!("{s}/exec"), Some(raw)).await.unwrap();
    assert_eq!(raw["output"], "\u{1b}[1mx\r\n\n");
    let seen = world.api.call("GET", &s, None).await.unwrap();
    assert_eq!(seen["cwd"], out["cwd"]);
    let died = exec(&world, &s, "exit 4").await;
    assert_eq!((&died["exit_code"], &died["cwd"]), (&json!(4), &out["cwd"]));
    let next = exec(&world, &s, "echo $A [$b]").await;
    assert_eq!((&next["output"], &next["cwd"]), (&json!("5 []"), &out["cwd"]));
}

#[tokio::test]
async fn a_timeout_is_504_kills_everything_and_the_session_goes_on() {
    let world = World::start().await;
    let s = session(&world).await;
    exec(&world, &s, "x=5").await;
    let body = json!({ "cmd": "sleep 600 & sleep 600; echo never", "timeout_ms": 200 });
    let answer = refused(&world, "POST", &format!("{s}/exec"), Some(body)).await;
    assert_eq!(answer, code(504, "COMMAND_TIMEOUT"));
    let after = exec(&world, &s, "echo $x; jobs -r").await;
    assert_eq!(after["output"], "5");
    let body = json!({ "cmd": "echo first; sleep 600", "timeout_ms": 300 });
    let events = events(&world, &s, body).await;
    let (name, data) = events.last().unwrap();
    assert_eq!((name.as_str(), &data["error_code"]), ("error", &json!("COMMAND_TIMEOUT")));
    assert!(data["error"].as_str().unwrap().starts_with("command timeout: "), "{data}");
}

#[tokio::test]
async fn long_output_is_cut_at_five_mebibytes_between_characters() {
    let world = World::start().await;
    let s = session(&world).await;
    let out = exec(&world, &s, "yes a€ | head -c 9000000").await;
    let text = out["output"].as_str().unwrap();
    assert_eq!((&out["exit_code"], &out["truncated"]), (&json!(0), &json!(true)));
    assert!(text.len() <= 5 << 20 && text.len() > (5 << 20) - 8, "{}", text.len());
    let odd = text.lines().position(|line| !"a€".starts_with(line));
    assert_eq!(odd, None, "{:?}", odd.map(|place| text.lines().nth(place)));
    let long = format!("echo {} | wc -c", "x".repeat(1_000_000));
    assert_eq!(exec(&world, &s, &long).await["output"], "1000001");
}

#[tokio::test]
async fn commands_of_one_session_take_turns() {
    let world = World::start().await;
    let s = session(&world).await;
    exec(&world, &s, "n=0").await;
    let one = |_| exec(&world, &s, "m=$n; sleep 0.02; n=$((m + 1))");
    futures_util::future::join_all((0..10).map(one)).await;
    assert_eq!(exec(&world, &s, "echo $n").await["output"], "10");
}

#[tokio::test]
async fn a_channel_that_breaks_loses_nothing_of_a_command() {
    let world = World::start().await;
    let s = session(&world).await;
    let cutting = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(80)).await;
            world.engine.cut_channels();
        }
    };
    let script = "for i in $(seq 100); do echo $i; sleep 0.01; done";
    let (out, ()) = tokio::join!(exec(&world, &s, script), cutting);
    let all: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
    assert_eq!(out["output"].as_str().unwrap(), all.join("\n"));
}

#[tokio::test]
async fn files_of_any_bytes_are_written_read_and_uploaded() {
    let world = World::start().await;
    let s = session(&world).await;
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n * 31 % 251) as u8).collect();
    for (path, content) in [("/workspace/d/a b", &bytes[..]), ("empty", b"")] {
        let body = json!({ "path": path, "content_base64": BASE64.encode(content) });
        let ok = world.api.call("POST", &format!("{s}/fs/write"), Some(body)).await.unwrap();
        assert_eq!(ok, json!({ "ok": true }));
        assert_eq!(read(&world, &s, path, "").await, (content.to_vec(), false));
    }
    assert_eq!(read(&world, &s, "d/a b", "&max_bytes=1000").await, (bytes[..1000].to_vec(), true));
    assert_eq!(read(&world, &s, "d/a b", "&max_bytes=100000").await, (bytes.clone(), false));
    let body = json!({ "path": "t", "text": "hé" });
    world.api.call("POST", &format!("{s}/fs/write"), Some(body)).await.unwrap();
    assert_eq!(read(&world, &s, "t", "").await.0, "hé".as_bytes());

    let part =
        |name: &str, content: &[u8]| Part::bytes(content.to_vec()).file_name(name.to_owned());
    let form = Form::new().part("file", part("x.bin", &bytes)).part("files", part("e", b""));
    let form = form.text("path", "/workspace/up");
    let request = world.api.request("POST", &format!("{s}/fs/upload")).multipart(form);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer, json!({ "ok": true, "paths": ["/workspace/up/x.bin", "/workspace/up/e"] }));
    assert_eq!(read(&world, &s, "up/x.bin", "").await.0, bytes);
    assert_eq!(read(&world, &s, "up/e", "").await.0, b"");
    let large = Form::new().part("file", part("l", &vec![0; (10 << 20) + 1]));
    let request = world.api.request("POST", &format!("{s}/fs/upload")).multipart(large);
    assert_eq!(request.send().await.unwrap().status(), 413);
    let answer = refused(&world, "GET", &format!("{s}/fs/read?path=up"), None).await;
    assert_eq!(answer, code(400, "INVALID_REQUEST"), "a directory is no file");
}

async fn read(world: &World, session: &str, path: &str, more: &str) -> (Vec<u8>, bool) {
    let path = path.replace(' ', "%20");
    let route = format!("{session}/fs/read?path={path}{more}");
    let answer = world.api.call("GET", &route, None).await.unwrap();
    let content = BASE64.decode(answer["content_base64"].as_str().unwrap()).unwrap();
    (content, answer["truncated"].as_bool().unwrap())
}

/// Name and data of every event.
async fn events(world: &World, session: &str, body: Value) -> Vec<(String, Value)> {
    let request = world.api.request("POST", &format!("{session}/exec/stream")).json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-cache");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let text = response.text().await.unwrap();
    text.split_terminator("\n\n").map(event).collect()
}

fn event(text: &str) -> (String, Value) {
    let (name, data) = text.split_once('\n').unwrap();
    let name = name.strip_prefix("event: ").unwrap();
    (name.to_owned(), serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
}

#[tokio::test]
async fn a_stream_tells_everything_and_then_the_end() {
    let world = World::start().await;
    let s = session(&world).await;
    let body = json!({ "cmd": "yes é | head -c 300000; printf '\\377\\n'; exit 5" });
    let events = events(&world, &s, body).await;
    let (last, chunks) = events.split_last().unwrap();
    let text: String = chunks.iter().map(|(_, data)| data["chunk"].as_str().unwrap()).collect();
    assert_eq!(text, format!("{}\u{fffd}\n", "é\n".repeat(100_000)));
    assert!(chunks.iter().all(|(name, data)| name == "chunk" && data["timestamp"].is_u64()));
    assert!(chunks.iter().all(|(_, data)| data["chunk"].as_str().unwrap().len() <= 8 << 10));
    assert_eq!((last.0.as_str(), &last.1["exit_code"]), ("done", &json!(5)));
    assert!(last.1["cwd"].is_string() && last.1["duration_ms"].is_u64(), "{}", last.1);
}

/// The pieces of a chunked answer, each as the server wrote it.
struct Pieces {
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Pieces {
    async fn open(world: &World, path: &str, body: &Value) -> Self {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        let (body, token) = (body.to_string(), &world.token);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut pieces = Self { socket, unread: Vec::new() };
        let head = pieces.until(b"\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        pieces
    }

    async fn next(&mut self) -> String {
        let size = self.until(b"\r\n").await;
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        while self.unread.len() < size + 2 {
            self.fill().await;
        }
        let piece: Vec<u8> = self.unread.drain(..size + 2).take(size).collect();
        String::from_utf8(piece).unwrap()
    }

    async fn until(&mut self, end: &[u8]) -> String {
        loop {
            let found = self.unread.windows(end.len()).position(|window| window == end);
            if let Some(place) = found {
                return String::from_utf8(self.unread.drain(..place + end.len()).collect())
                    .unwrap();
            }
            self.fill().await;
        }
    }

    async fn fill(&mut self) {
        let mut buffer = [0; 4096];
        let read = tokio::time::timeout(SOON, self.socket.read(&mut buffer)).await;
        let count = read.expect("the stream goes on").unwrap();
        assert_ne!(count, 0, "the stream broke off");
        self.unread.extend_from_slice(&buffer[..count]);
    }
}

#[tokio::test]
async fn output_comes_when_it_is_written_each_event_as_one_piece_and_no_character_cut() {
    let world = World::start().await;
    let s = session(&world).await;
    // Goes on only when the test has seen what came before.
    let wait = "until [ -e $F ]; do sleep 0.01; done; rm $F";
    let go = world.data.path().join("go");
    let cmd = format!(
        "F={}; printf 'one\\n'; {wait}; printf 'h\\303'; sleep 0.3; printf '\\251\\n'; {wait}; echo three",
        go.display()
    );
    let path = format!("{s}/exec/stream");
    let mut pieces = Pieces::open(&world, &path, &json!({ "cmd": cmd })).await;
    let mut text = String::new();
    for line in ["one\n", "hé\n", "three\n"] {
        while !text.ends_with(line) {
            let piece = pieces.next().await;
            assert!(
                piece.starts_with("event: chunk\ndata: {") && piece.ends_with("}\n\n"),
                "{piece}"
            );
            assert_eq!(piece.matches('\n').count(), 3, "not one event: {piece}");
            text.push_str(event(piece.trim_end()).1["chunk"].as_str().unwrap());
        }
        std::fs::write(&go, "").unwrap();
        if line == "three\n" {
            break;
        }
        wait_for("the script to go on", SOON, || async { !go.exists() }).await.unwrap();
    }
    assert_eq!(text, "one\nhé\nthree\n");
    let done = pieces.next().await;
    assert_eq!(event(done.trim_end()).1["exit_code"], 0);
    assert_eq!(pieces.next().await, "", "nothing after the end");
}

#[tokio::test]
async fn each_use_sets_the_end_by_the_sessions_own_ttl() {
    let world = World::with(&[("sessions.ttl_seconds", "5")]).await;
    let request = json!({ "ttl_seconds": 3600 });
    let made = world.api.call("POST", "/v1/sessions", Some(request)).await.unwrap();
    let s = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
    exec(&world, &s, "sleep 0.1").await;
    let seen = world.api.call("GET", &s, None).await.unwrap();
    assert!(seen["expires_at"].as_str() > made["expires_at"].as_str(), "{seen}\n{made}");
    let seconds = |text: &Value| {
        let text = text.as_str().unwrap();
        let part = |from: usize| text[from..from + 2].parse::<i64>().unwrap();
        part(8) * 86_400 + part(11) * 3600 + part(14) * 60 + part(17)
    };
    let left = (seconds(&seen["expires_at"]) - seconds(&seen["created_at"])).rem_euclid(86_400);
    assert!((3600..3660).contains(&left), "{left}: {seen}");
    let usual = session(&world).await;
    let usual = world.api.call("GET", &usual, None).await.unwrap();
    let left = (seconds(&usual["expires_at"]) - seconds(&usual["created_at"])).rem_euclid(86_400);
    assert!((5..60).contains(&left), "{left}: {usual}");
}

#[tokio::test]
async fn a_session_that_nobody_used_has_expired() {
    let world = World::start().await;
    let request = json!({ "ttl_seconds": 1 });
    let made = world.api.call("POST", "/v1/sessions", Some(request)).await.unwrap();
    let s = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
    wait_for("the session to expire", SOON, || async {
        world.api.call("GET", &s, None).await.unwrap()["status"] == "expired"
    })
    .await
    .unwrap();
    let body = json!({ "cmd": "true" });
    let answer = refused(&world, "POST", &format!("{s}/exec"), Some(body)).await;
    assert_eq!(answer, code(410, "SESSION_EXPIRED"));
}

#[tokio::test]
async fn only_allowed_images_are_taken_and_the_default_is_the_configured_one() {
    let settings = [("sessions.allowed_images", "python,node"), ("sessions.default_image", "node")];
    let world = World::with(&settings).await;
    let made = world.api.call("POST", "/v1/sessions", Some(json!({}))).await.unwrap();
    assert_eq!(made["image"], "node");
    let request = json!({ "image": "base" });
    let (status, body) = world.api.try_call("POST", "/v1/sessions", Some(request)).await.unwrap();
    assert_eq!((status, &body["error_code"]), (400, &json!("INVALID_IMAGE")));
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("there are: node, python"), "{message}");
}

#[tokio::test]
async fn scripts_are_not_in_the_log() {
    let (log, _guard) = crate::log_lines::capture();
    let world = World::start().await;
    let s = session(&world).await;
    exec(&world, &s, "true; echo /x/hunter2").await;
    let text = log.text();
    assert!(text.contains("command ran"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
