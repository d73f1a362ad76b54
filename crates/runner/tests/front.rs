//! The JSON-lines front: `runner --client` against a running runner.

#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod live_runner;

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use live_runner::LiveRunner;
use serde_json::{Value, json};

/// The one line it prints, and its exit code.
fn ask_at(socket: &Path, request: &str) -> (Value, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["--client", request, "--socket"])
        .arg(socket)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one line, not {text:?}");
    (serde_json::from_str(&text).unwrap(), output.status.code().unwrap())
}

fn ask(runner: &LiveRunner, request: Value) -> Value {
    let (answer, code) = ask_at(&runner.socket(), &request.to_string());
    assert_eq!(code, 0, "{answer}");
    assert_eq!(answer["id"], request["id"]);
    answer
}

#[test]
fn exec_answers_with_code_directory_output_and_duration() {
    let runner = LiveRunner::start();
    let cmd = "echo out; echo err >&2; exit 3";
    let answer =
        ask(&runner, json!({"id": "abc", "type": "exec", "cmd": cmd, "timeout_ms": 30000}));
    assert_eq!(answer["type"], "exec");
    assert_eq!(answer["exit_code"], 3);
    assert_eq!(answer["cwd"], runner.inside("").to_str().unwrap().trim_end_matches('/'));
    let output = answer["output"].as_str().unwrap();
    assert!(output.contains("out\n") && output.contains("err\n"), "{output:?}");
    assert_eq!(answer["truncated"], false);
    assert!(answer["duration_ms"].is_u64());
    // The same id again is a new command.
    let again = ask(&runner, json!({"id": "abc", "type": "exec", "cmd": "echo \"$0 it's\" '$x'"}));
    assert!(again["output"].as_str().unwrap().ends_with("it's $x\n"), "{again}");
}

#[test]
fn long_output_is_cut_and_marked() {
    let runner = LiveRunner::start();
    let cmd = "head -c 3000000 /dev/zero | tr '\\0' x";
    let answer = ask(&runner, json!({"id": 1, "type": "exec", "cmd": cmd}));
    assert_eq!(answer["exit_code"], 0);
    assert_eq!(answer["truncated"], true);
    assert_eq!(answer["output"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_timeout_is_an_error() {
    let runner = LiveRunner::start();
    let request = json!({"id": "t", "type": "exec", "cmd": "sleep 1000", "timeout_ms": 100});
    let answer = ask(&runner, request);
    assert_eq!(answer, json!({"id": "t", "type": "error", "message": "timeout exceeded"}));
}

#[test]
fn files_are_written_and_read_as_base64() {
    let runner = LiveRunner::start();
    let content = STANDARD.encode(b"\0binary\xff");
    let path = "/workspace/new/file";
    let write = json!({"id": "w", "type": "write", "path": path, "content_base64": content});
    assert_eq!(ask(&runner, write), json!({"id": "w", "type": "write", "ok": true}));
    assert_eq!(std::fs::read(runner.inside("new/file")).unwrap(), b"\0binary\xff");
    let read = json!({"id": "r", "type": "read", "path": path, "max_bytes": 1048576});
    let expected =
        json!({"id": "r", "type": "read", "content_base64": content, "truncated": false});
    assert_eq!(ask(&runner, read), expected);
    let part = ask(&runner, json!({"id": "r", "type": "read", "path": path, "max_bytes": 3}));
    assert_eq!(part["content_base64"], STANDARD.encode(b"\0bi"));
    assert_eq!(part["truncated"], true);
}

#[test]
fn refusals_are_errors_with_a_message() {
    let runner = LiveRunner::start();
    for request in [
        json!({"id": "e", "type": "read", "path": "/workspace/nope"}),
        json!({"id": "e", "type": "read", "path": "/etc/passwd"}),
        json!({"id": "e", "type": "write", "path": "../x", "content_base64": ""}),
        json!({"id": "e", "type": "write", "path": "x", "content_base64": "***"}),
    ] {
        let answer = ask(&runner, request);
        assert_eq!(answer["type"], "error");
        assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
}

#[test]
fn wrong_requests_and_missing_runners_have_exit_codes_of_their_own() {
    let runner = LiveRunner::start();
    for request in ["{", "[]", r#"{"id":"x","type":"dance"}"#, r#"{"id":"x","type":"exec"}"#] {
        let (answer, code) = ask_at(&runner.socket(), request);
        assert_eq!((answer["type"].as_str(), code), (Some("error"), 64), "{request}");
    }
    let request = r#"{"id":"x","type":"exec","cmd":"true"}"#;
    let (answer, code) = ask_at(&runner.inside("no-socket"), request);
    assert_eq!((answer["type"].as_str(), code), (Some("error"), 69));
    assert_eq!(answer["id"], "x");
}

#[test]
fn the_socket_may_come_from_the_environment() {
    let runner = LiveRunner::start();
    let output = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["--client", r#"{"id":"x","type":"exec","cmd":"echo hi"}"#])
        .env("SANDBANK_RUNNER_SOCKET", runner.socket())
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["output"], "hi\n");
}
