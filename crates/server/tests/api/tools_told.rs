//! What is told of the tools beside their results: how far the filling of a workspace is, and numbers for those who watch.

use std::time::Duration;

use reqwest::Client;
use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::tools::{ON, Tools};

const LIMIT: Duration = Duration::from_secs(20);

/// A project of some files, and a section that has it uploaded.
fn project() -> (tempfile::TempDir, String) {
    let project = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        std::fs::write(project.path().join(name), name).unwrap();
    }
    let section = format!("enabled = true\nproject_root = {:?}", project.path().to_str().unwrap());
    (project, section)
}

#[tokio::test]
async fn whoever_streams_is_told_how_far_the_filling_is() {
    let (_project, section) = project();
    let tools = Tools::with(&section, &[ON]).await;
    let records = tools.streamed("ls").await;
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    let prepared: Vec<_> = records.iter().filter(|record| record["type"] == "preparing").collect();
    assert!(!prepared.is_empty() && kinds[0] == "progress", "{records:?}");
    assert!(prepared[0]["message"].as_str().unwrap().contains("3 files"), "{records:?}");
    assert_eq!(records.last().unwrap()["output"]["stdout"], "a\nb\nc\n");
    let again = tools.streamed("ls").await;
    assert!(!again.iter().any(|record| record["type"] == "preparing"), "{again:?}");
    let text = tools.post("bash?stream=sse", &json!({ "command": "ls" }));
    let text = text.header("x-sandbank-session", "other").send().await.unwrap();
    let text = text.text().await.unwrap();
    assert!(text.contains("event: preparing\ndata: {\"message\":\"upload"), "{text}");
}

#[tokio::test]
async fn an_mcp_client_that_wants_progress_is_told_of_the_filling_and_of_questions() {
    let (_project, section) = project();
    let rules = "[[app.bash_tools.approvals.rules]]\naction = \"ask\"\ncommand = \"touch\"";
    let tools = Tools::with(&format!("{section}\n{rules}"), &[ON]).await;
    let url = format!("http://{}/mcp", tools.world.address);
    let send = |session: Option<&str>, body: Value| {
        let request = Client::new().post(&url).bearer_auth(&tools.world.token).json(&body);
        let request = request.header("accept", "application/json, text/event-stream");
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    };
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "told", "version": "1" } });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let begun = send(None, body).send().await.unwrap();
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let call = |name: &str, input: Value| {
        let params = json!({ "name": name, "arguments": input, "_meta": { "progressToken": 7 } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let listed = send(Some(&session), call("listFiles", json!({}))).send().await.unwrap();
    let events = events(&listed.text().await.unwrap());
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!(
        (&first["method"], &first["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!(7))
    );
    assert!(first["params"]["message"].as_str().unwrap().contains("3 files"), "{events:?}");
    assert_eq!(last["result"]["structuredContent"]["entries"][0]["path"], ".remcochat", "{last}");

    let input = json!({ "command": "touch x" });
    let mut asked = send(Some(&session), call("bash", input)).send().await.unwrap();
    let mut text = String::new();
    while !text.contains("/api/tools/approvals/ta") {
        let piece = asked.chunk().await.unwrap().expect("the question is told");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(text.contains("waiting for a person to allow this call"), "{text}");
}

fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The question that waits, once it can be seen: it is counted before it is written down.
async fn waiting(tools: &Tools) -> Value {
    let list = async || tools.world.api.call("GET", "/api/tools/approvals", None).await.unwrap();
    let is_seen = || async { list().await["waiting"] == 1 };
    wait_for("the question can be seen", LIMIT, is_seen).await.unwrap();
    list().await["approvals"][0].clone()
}

#[tokio::test]
async fn the_tools_numbers_are_among_the_daemons() {
    let (_project, section) = project();
    let rules = "[[app.bash_tools.approvals.rules]]\naction = \"deny\"\ncommand = \"touch\"\n\
                 [[app.bash_tools.approvals.rules]]\naction = \"ask\"\ncommand = \"mkdir\"";
    let tools = Tools::with(&format!("{section}\n{rules}"), &[ON]).await;
    assert_eq!(tools.bash("exit 3").await["exitCode"], 3);
    tools.bash("true").await;
    tools.call("readFile", json!({ "path": "a" })).await;
    for (tool, input) in [
        ("readFile", json!({ "path": "none" })),
        ("bash", json!({})),
        ("bash", json!({ "command": "touch x" })),
        ("whatever\"}\n", json!({})),
        ("whatever-else", json!({})),
    ] {
        let path = tool.replace(['"', '}', '\n'], "%22");
        let answer = tools.post(&path, &input).send().await.unwrap();
        assert!(answer.status().is_client_error(), "{tool}");
    }
    let far = tools.post("bash", &json!({ "command": "true" })).header("via", "1.1 x");
    assert_eq!(far.send().await.unwrap().status(), 403);

    // One is allowed, and one goes away while it waits.
    let numbers = async || {
        let metrics = tools.world.api.request("GET", "/metrics").send().await.unwrap();
        metrics.text().await.unwrap()
    };
    let has = async |line: &'static str| {
        let seen = || async { numbers().await.lines().any(|seen| seen == line) };
        wait_for(line, LIMIT, seen).await.unwrap();
    };
    for allow in [true, false] {
        let asking = tokio::spawn(tools.post("bash", &json!({ "command": "mkdir d" })).send());
        has("sandbank_tool_approvals_waiting 1").await;
        let row = waiting(&tools).await;
        if allow {
            let path = format!("/api/tools/approvals/{}", row["id"].as_str().unwrap());
            let body = json!({ "decision": "allow", "digest": row["digest"] });
            tools.world.api.call("POST", &path, Some(body)).await.unwrap();
            assert_eq!(asking.await.unwrap().unwrap().status(), 200);
        } else {
            asking.abort();
            has("sandbank_tool_approvals_waiting 0").await;
        }
    }
    has(r#"sandbank_tool_calls_total{tool="bash",outcome="cancelled"} 1"#).await;
    let text = numbers().await;
    for line in [
        r#"sandbank_tool_calls_total{tool="bash",outcome="done"} 3"#,
        r#"sandbank_tool_calls_total{tool="bash",outcome="denied"} 1"#,
        r#"sandbank_tool_calls_total{tool="bash",outcome="invalid_input"} 1"#,
        r#"sandbank_tool_calls_total{tool="readFile",outcome="done"} 1"#,
        r#"sandbank_tool_calls_total{tool="readFile",outcome="not_found"} 1"#,
        r#"sandbank_tool_calls_total{tool="unknown",outcome="unknown_tool"} 2"#,
        r#"sandbank_tool_refusals_total{reason="tools_not_for_you"} 1"#,
        r#"sandbank_tool_seeds_total{outcome="done"} 1"#,
        r#"sandbank_tool_approvals_total{outcome="allowed"} 1"#,
        r#"sandbank_tool_approvals_total{outcome="denied_by_rule"} 1"#,
        r#"sandbank_tool_approvals_total{outcome="withdrawn"} 1"#,
        "sandbank_tool_sessions 1",
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("whatever"), "a caller's word is a label:\n{text}");
}

#[tokio::test]
async fn a_workspace_that_cannot_be_filled_is_counted() {
    let section = "enabled = true\nproject_root = \"/no/such/directory\"";
    let tools = Tools::with(section, &[ON]).await;
    let answer = tools.post("bash", &json!({ "command": "true" })).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let metrics = tools.world.api.request("GET", "/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    for line in [
        r#"sandbank_tool_seeds_total{outcome="failed"} 1"#,
        r#"sandbank_tool_calls_total{tool="bash",outcome="unavailable"} 1"#,
        "sandbank_tool_sessions 0",
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
    }
}
