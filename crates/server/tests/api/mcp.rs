//! MCP beside the tools' own routes: whose a sandbox is, when it ends, and what switches MCP off.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderValue;
use reqwest::RequestBuilder;
use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::world::{World, code, refused};

const ON: (&str, &str) = ("REMCOCHAT_ENABLE_BASH_TOOL", "1");
const LIMIT: Duration = Duration::from_secs(20);
/// Sessions of one token at a time.
const SESSIONS: usize = 128;

/// With `[app.bash_tools]` as the section says; the file is kept as long as the test runs.
async fn world(section: &str, env: &[(&str, &str)]) -> (World, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("[app.bash_tools]\n{section}\n")).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let env = [&[("REMCOCHAT_CONFIG_PATH", path.as_str())], env].concat();
    (World::with_env(&env).await, file)
}

async fn token(world: &World, name: &str) -> String {
    let body = json!({ "name": name, "scope": "sandbox" });
    let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

fn post(world: &World, token: &str, method: &str, params: Value) -> RequestBuilder {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    world.open("POST", "/mcp").bearer_auth(token).body(message.to_string())
}

fn initialize(world: &World, token: &str) -> RequestBuilder {
    let client = json!({ "name": "raw", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    post(world, token, "initialize", params)
}

/// The session's id.
async fn begun(request: RequestBuilder) -> String {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn bash(world: &World, token: &str, session: &str, command: &str) -> Value {
    let params = json!({ "name": "bash", "arguments": { "command": command } });
    let request = post(world, token, "tools/call", params).header("mcp-session-id", session);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["result"]["structuredContent"]["stdout"].clone()
}

#[tokio::test]
async fn no_name_of_the_tools_routes_leads_to_a_sandbox_of_mcp() {
    let (world, _file) = world("enabled = true", &[ON]).await;
    let (one, two) = (token(&world, "one").await, token(&world, "two").await);
    let named = initialize(&world, &one).header("x-sandbank-session", "proj");
    let session = begun(named).await;
    assert_eq!(bash(&world, &one, &session, "echo secret | tee note").await, "secret\n");
    let read = |name: &str| {
        let name = HeaderValue::from_bytes(name.as_bytes()).unwrap();
        let request = world.open("POST", "/api/tools/readFile").bearer_auth(&two);
        request.header("x-sandbank-session", name).body(json!({ "path": "note" }).to_string())
    };
    assert_eq!(refused(read("mcp:one:proj")).await, code(404, "not_found"));
    for name in ["@mcp:one:proj", " @mcp:one:proj", "\u{3000}@mcp:one:proj"] {
        assert_eq!(refused(read(name)).await, code(400, "bad_session"), "{name:?}");
    }
    let reset = world.open("DELETE", "/api/tools/session").bearer_auth(&two);
    let reset = reset.header("x-sandbank-session", "@mcp:one:proj");
    assert_eq!(refused(reset).await, code(400, "bad_session"));
    assert_eq!(bash(&world, &one, &session, "cat note").await, "secret\n");
}

#[tokio::test]
async fn a_session_that_makes_room_takes_its_own_sandbox_along() {
    let (world, _file) = world("", &[]).await;
    let token = token(&world, "one").await;
    let named = initialize(&world, &token).header("x-sandbank-session", "kept");
    let (kept, own) = (begun(named).await, begun(initialize(&world, &token)).await);
    for session in [&kept, &own] {
        assert_eq!(bash(&world, &token, session, "echo here").await, "here\n");
    }
    assert_eq!(world.api.sandboxes().await.unwrap().len(), 2);
    for _ in 0..SESSIONS {
        begun(initialize(&world, &token)).await;
    }
    let one_is_left = || async { world.api.sandboxes().await.unwrap().len() == 1 };
    wait_for("the sandbox of the session that made room ends", LIMIT, one_is_left).await.unwrap();
    let named = initialize(&world, &token).header("x-sandbank-session", "kept");
    let again = begun(named).await;
    assert_eq!(bash(&world, &token, &again, "echo there").await, "there\n");
    assert_eq!(world.api.sandboxes().await.unwrap().len(), 1, "the one with a name was kept");
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_a_failure_that_the_model_sees() {
    let (world, _file) = world("", &[]).await;
    let session = begun(initialize(&world, &world.token)).await;
    world.engine.is_away.store(true, Ordering::SeqCst);
    let params = json!({ "name": "bash", "arguments": { "command": "true" } });
    let call = post(&world, &world.token, "tools/call", params);
    let call = call.header("mcp-session-id", &session).send().await.unwrap();
    let answer: Value = call.json().await.unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let why = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("does not answer: it is away"), "{answer}");
    world.engine.is_away.store(false, Ordering::SeqCst);
    assert_eq!(bash(&world, &world.token, &session, "echo back").await, "back\n");
}

#[tokio::test]
async fn the_rest_of_a_batch_is_not_done_once_its_session_has_ended() {
    let (world, _file) = world("", &[]).await;
    let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "raw", "version": "1" } });
    let session = begun(post(&world, &world.token, "initialize", params)).await;
    let marks = tempfile::tempdir().unwrap();
    let (first, second) = (marks.path().join("first"), marks.path().join("second"));
    let call = |id: u64, command: String| {
        let params = json!({ "name": "bash", "arguments": { "command": command } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let batch = json!([
        call(1, format!("touch {}; sleep 600", first.display())),
        call(2, format!("touch {}", second.display())),
    ]);
    let batch = world.open("POST", "/mcp").bearer_auth(&world.token).body(batch.to_string());
    let batch = tokio::spawn(batch.header("mcp-session-id", &session).send());
    wait_for("the first call to run", LIMIT, || async { first.exists() }).await.unwrap();
    let end = world.open("DELETE", "/mcp").bearer_auth(&world.token);
    let end = end.header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(end.status(), 200);
    let answers: Value = batch.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(answers[1]["error"]["code"], -32000, "{answers}");
    assert!(!second.exists());
    assert!(world.api.sandboxes().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_call_for_whose_answer_there_is_no_stream_is_not_begun() {
    let world = World::with(&[("server.max_streams", "1")]).await;
    let session = begun(initialize(&world, &world.token)).await;
    let streamed = |command: &str| {
        let params = json!({ "name": "bash", "arguments": { "command": command } });
        let request = post(&world, &world.token, "tools/call", params);
        request.header("mcp-session-id", &session).header("accept", "text/event-stream")
    };
    let only = world.api.request("GET", "/v1/events").send().await.unwrap();
    assert_eq!(only.status(), 200);
    for _ in 0..8 {
        assert_eq!(refused(streamed("true")).await, code(503, "too_many_streams"));
    }
    let metrics = world.api.request("GET", "/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(!text.contains("sandbank_tool_calls_total{"), "{text}");
    drop(only);
}

#[tokio::test]
async fn it_needs_no_switch_on_but_what_is_switched_off_is_off() {
    for (section, env, closed) in [
        ("", None, None),
        ("", Some("1"), None),
        ("enabled = true", None, None),
        ("enabled = true", Some("0"), Some("tools_switched_off")),
        ("", Some("off"), Some("tools_switched_off")),
        ("enabled = false", Some("1"), Some("tools_disabled")),
        ("enabled = false", None, Some("tools_disabled")),
    ] {
        let env: Vec<_> = env.into_iter().map(|word| (ON.0, word)).collect();
        let (world, _file) = world(section, &env).await;
        let begin = initialize(&world, &world.token);
        match closed {
            Some(closed) => {
                assert_eq!(refused(begin).await, code(404, closed), "{section} {env:?}")
            }
            None => drop(begun(begin).await),
        }
    }
}
