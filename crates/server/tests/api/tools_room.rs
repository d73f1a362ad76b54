//! What becomes of sessions when there is room for fewer sandboxes than there are of them.

use serde_json::{Value, json};

use crate::tools::{ON, Tools};

const ONE: &str = "enabled = true\nmax_concurrent_sandboxes = 1";

async fn call(tools: &Tools, session: &str, tool: &str, input: Value) -> Value {
    let request = tools.post(tool, &input).header("x-sandbank-session", session);
    request.send().await.unwrap().json().await.unwrap()
}

async fn bash(tools: &Tools, session: &str, command: &str) -> Value {
    call(tools, session, "bash", json!({ "command": command })).await
}

#[tokio::test]
async fn a_session_whose_sandbox_made_room_is_told_that_its_files_are_gone() {
    let tools = Tools::with(ONE, &[ON]).await;
    let gone = "files and programs of earlier calls are gone";
    let first = bash(&tools, "one", "echo x > kept").await;
    assert!(first.get("notice").is_none(), "{first}");
    bash(&tools, "two", "true").await;
    let again = bash(&tools, "one", "ls").await;
    assert_eq!(again["stdout"], "");
    assert!(again["notice"].as_str().unwrap().contains(gone), "{again}");
    let later = bash(&tools, "one", "ls").await;
    assert!(later.get("notice").is_none(), "{later}");

    // Most of all where a file is missed.
    let read = call(&tools, "two", "readFile", json!({ "path": "kept" })).await;
    assert_eq!(read["code"], "not_found");
    assert!(read["error"].as_str().unwrap().contains(gone), "{read}");
    let read = call(&tools, "two", "readFile", json!({ "path": "kept" })).await;
    assert!(!read["error"].as_str().unwrap().contains(gone), "{read}");
}

#[tokio::test]
async fn a_chat_that_only_talks_takes_nobodys_sandbox() {
    // The model is away: what it would say does not matter here.
    let chat = "[app.chat]\nmodel = \"none\"\nbase_url = \"http://127.0.0.1:1/v1\"";
    let tools = Tools::with(&format!("{ONE}\n{chat}"), &[ON]).await;
    bash(&tools, "one", "echo x > kept").await;
    let parts = json!([{ "type": "text", "text": "hello" }]);
    let body = json!({ "id": "c", "messages": [{ "id": "1", "role": "user", "parts": parts }] });
    let said = tools.world.open("POST", "/api/chat").body(body.to_string()).send().await.unwrap();
    assert_eq!(said.headers()["x-remcochat-bash-tools-enabled"], "1");
    said.text().await.unwrap();
    let listed = tools.world.open("GET", "/api/tools?prewarm=true");
    let listed = listed.header("x-sandbank-session", "two").send().await.unwrap();
    assert_eq!(listed.status(), 200);
    assert_eq!(bash(&tools, "one", "cat kept").await["stdout"], "x");
}
