//! `/mcp` as raw requests: what well-behaved clients never do, and whose session is whose.

use anyhow::Context;
use reqwest::{Client, Method, Response};
use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::SANDBANK;

struct Mcp {
    http: Client,
    url: String,
    token: String,
}

impl Mcp {
    fn of(daemon: &TestDaemon, token: String) -> Self {
        Self { http: Client::new(), url: format!("{}/mcp", daemon.url()), token }
    }

    async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: String,
    ) -> anyhow::Result<Response> {
        let mut request = self.http.request(method, &self.url).bearer_auth(&self.token).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.send().await?)
    }

    /// The status, and the answer where it is JSON.
    async fn post(&self, session: Option<&str>, body: &Value) -> anyhow::Result<(u16, Value)> {
        let headers: Vec<_> = session.iter().map(|id| ("mcp-session-id", *id)).collect();
        let response = self.send(Method::POST, &headers, body.to_string()).await?;
        let status = response.status().as_u16();
        Ok((status, serde_json::from_slice(&response.bytes().await?).unwrap_or_default()))
    }

    /// The session's id.
    async fn begin(&self, version: &str) -> anyhow::Result<String> {
        let response = self.send(Method::POST, &[], initialize(version).to_string()).await?;
        let id = response.headers().get("mcp-session-id").context("a session has an id")?;
        Ok(id.to_str()?.to_owned())
    }
}

fn message(id: Option<u64>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

fn initialize(version: &str) -> Value {
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    message(Some(0), "initialize", params)
}

fn bash(id: u64, command: &str) -> Value {
    message(Some(id), "tools/call", json!({ "name": "bash", "arguments": { "command": command } }))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_is_spoken_and_batches_belong_to_one_of_them() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let mcp = Mcp::of(&daemon, daemon.token()?);
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let (status, answer) = mcp.post(None, &initialize(version)).await?;
        assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!(version)));
    }
    let (_, answer) = mcp.post(None, &initialize("1999-01-01")).await?;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let (_, answer) = mcp.post(None, &message(Some(1), "initialize", json!({}))).await?;
    assert_eq!(answer["error"]["code"], -32602);

    let session = mcp.begin("2025-03-26").await?;
    let batch = json!([
        message(Some(1), "ping", json!({})),
        message(None, "notifications/initialized", json!({})),
        bash(2, "echo two"),
        message(Some(3), "nothing/like/it", json!({})),
        7,
    ]);
    let (status, answers) = mcp.post(Some(&session), &batch).await?;
    assert_eq!(status, 200, "{answers}");
    assert_eq!(answers[0], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    assert_eq!(answers[1]["result"]["structuredContent"]["stdout"], "two\n", "{answers}");
    assert_eq!(answers[2]["error"]["code"], -32601);
    assert_eq!(answers[3]["error"]["code"], -32600);
    assert_eq!(answers.as_array().map(Vec::len), Some(4));
    let silent = json!([message(None, "notifications/initialized", json!({}))]);
    assert_eq!(mcp.post(Some(&session), &silent).await?.0, 202);
    let empty = mcp.post(Some(&session), &json!([])).await?;
    assert_eq!((empty.0, &empty.1["error"]["code"]), (400, &json!(-32600)));
    let session = mcp.begin("2025-06-18").await?;
    let refused = mcp.post(Some(&session), &batch).await?;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (400, &json!(-32600)));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_known_to_the_token_that_began_it_and_to_no_other() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let token = async |name: &str, scope: &str| -> anyhow::Result<String> {
        let body = json!({ "name": name, "scope": scope });
        let made = api.call("POST", "/v1/tokens", Some(body)).await?;
        Ok(made["token"].as_str().context("a token")?.to_owned())
    };
    let own = Mcp::of(&daemon, token("one", "sandbox").await?);
    let other = Mcp::of(&daemon, token("two", "sandbox").await?);
    let session = own.begin("2025-11-25").await?;
    let ping = message(Some(1), "ping", json!({}));
    assert_eq!(own.post(Some(&session), &ping).await?.0, 200);
    assert_eq!(other.post(Some(&session), &ping).await?.0, 404);
    assert_eq!(own.post(Some("guessed"), &ping).await?.0, 404);
    assert_eq!(own.post(None, &ping).await?.0, 400);
    let header = [("mcp-session-id", session.as_str())];
    let ended = other.send(Method::DELETE, &header, String::new()).await?;
    assert_eq!(ended.status(), 404);
    assert_eq!(own.post(Some(&session), &ping).await?.0, 200, "it lives");
    assert_eq!(own.send(Method::DELETE, &header, String::new()).await?.status(), 200);
    assert_eq!(own.post(Some(&session), &ping).await?.0, 404);

    // Sandboxes with a name are the token's own, too.
    let named = [("x-sandbank-session", "same")];
    let mut found = Vec::new();
    for mcp in [&own, &other, &own] {
        let begun = mcp.send(Method::POST, &named, initialize("2025-11-25").to_string()).await?;
        let session = begun.headers()["mcp-session-id"].to_str()?.to_owned();
        let (_, answer) = mcp.post(Some(&session), &bash(1, "ls; touch seen")).await?;
        found.push(answer["result"]["structuredContent"]["stdout"].clone());
    }
    assert_eq!(found, [json!(""), json!(""), json!("seen\n")]);

    let looker = Mcp::of(&daemon, token("looker", "read_only").await?);
    assert_eq!(looker.post(None, &initialize("2025-11-25")).await?.0, 403);
    let nobody = Mcp::of(&daemon, "wrong".to_owned());
    assert_eq!(nobody.post(None, &initialize("2025-11-25")).await?.0, 401);
    let anonymous = Client::new().post(format!("{}/mcp", daemon.url())).send().await?;
    assert_eq!(anonymous.status(), 401, "on a loopback address too");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_refused_by_its_code() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let mcp = Mcp::of(&daemon, daemon.token()?);
    let session = mcp.begin("2025-11-25").await?;
    let own = ("mcp-session-id", session.as_str());
    let code = async |body: &str| -> anyhow::Result<(u16, Value)> {
        let response = mcp.send(Method::POST, &[own], body.to_owned()).await?;
        let status = response.status().as_u16();
        let answer: Value = response.json().await?;
        Ok((status, answer["error"]["code"].clone()))
    };
    assert_eq!(code("{").await?, (400, json!(-32700)));
    assert_eq!(code("7").await?, (400, json!(-32600)));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).await?, (400, json!(-32600)));
    for (method, params, wanted) in [
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": "bash", "arguments": [] }), -32602),
        ("tools/call", json!({ "name": "none" }), -32602),
        ("tools/list", json!({ "cursor": "x" }), -32602),
        ("resources/list", json!({}), -32601),
    ] {
        let body = message(Some(1), method, params).to_string();
        assert_eq!(code(&body).await?, (200, json!(wanted)), "{body}");
    }
    let ping = message(Some(1), "ping", json!({})).to_string();
    for (headers, status) in [
        (vec![own, ("mcp-protocol-version", "2025-11-25")], 200),
        (vec![own, ("mcp-protocol-version", "1999-01-01")], 400),
        (vec![own, ("origin", "https://evil.example")], 403),
    ] {
        let response = mcp.send(Method::POST, &headers, ping.clone()).await?;
        assert_eq!(response.status(), status, "{headers:?}");
    }
    let listening = mcp.send(Method::GET, &[own], String::new()).await?;
    assert_eq!(
        (listening.status().as_u16(), &listening.headers()["allow"]),
        (405, &"POST, DELETE".parse()?)
    );
    let long = bash(1, &"x".repeat(9 << 20)).to_string();
    assert_eq!(mcp.send(Method::POST, &[own], long).await?.status(), 413);
    for name in ["", "a b", "../x", &"x".repeat(65)] {
        let named = [("x-sandbank-session", name)];
        let begun = mcp.send(Method::POST, &named, initialize("2025-11-25").to_string()).await?;
        assert_eq!(begun.status(), 400, "{name:?}");
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_ends_its_call() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let mcp = Mcp::of(&daemon, daemon.token()?);
    let session = mcp.begin("2025-11-25").await?;
    let mut call = bash(1, "echo begun; sleep 7331");
    call["params"]["_meta"] = json!({ "progressToken": "p" });
    let headers =
        [("mcp-session-id", session.as_str()), ("accept", "application/json, text/event-stream")];
    let mut stream = mcp.send(Method::POST, &headers, call.to_string()).await?;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("begun") {
        seen.extend_from_slice(&stream.chunk().await?.context("it runs")?);
    }
    let count = async || -> anyhow::Result<u64> {
        let look = bash(2, "ps ax | grep -c '[s]leep 7331' || true");
        let (_, answer) = mcp.post(Some(&session), &look).await?;
        let said = answer["result"]["structuredContent"]["stdout"].clone();
        Ok(said.as_str().context("a count")?.trim().parse()?)
    };
    assert!(count().await? > 0);
    drop(stream);
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while count().await? > 0 {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "the command outlives its call");
    }
    daemon.finish().await
}
