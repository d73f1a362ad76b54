//! The five end-to-end cases of the orchestrator's specification, through HTTP, on a real daemon.

use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

#[tokio::test(flavor = "multi_thread")]
async fn echo_write_read_stream_serve_and_stop() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let created = api
        .call(
            "POST",
            "/v1/sandboxes",
            Some(json!({
                "sessionKey": "chat:1", "runtime": "node24", "idleTtlMs": 900_000,
                "resources": { "vcpus": 2, "memoryMb": 2048 },
                "network": { "mode": "none" }, "ports": [3000]
            })),
        )
        .await?;
    assert_eq!(created["created"], json!(true));
    let id = created["sandboxId"].as_str().unwrap().to_owned();

    // 1. A trivial command.
    let (code, out, err) = api.run(&id, "echo hello; pwd; echo oops >&2").await?;
    assert_eq!((code, err.as_str()), (0, "oops\n"));
    assert_eq!(out, "hello\n/vercel/sandbox/workspace\n");

    // 2. Write, then read.
    let path = "/vercel/sandbox/workspace/.remcochat/notes.txt";
    let bytes: Vec<u8> = (0..=255).collect();
    api.write(&id, path, &bytes).await?;
    assert_eq!(api.read(&id, path).await?, Some(bytes));
    assert_eq!(api.read(&id, "/vercel/sandbox/workspace/none").await?, None);
    let (_, listed, _) = api.run(&id, "ls /workspace/.remcochat /home/user/.remcochat").await?;
    assert_eq!(listed.matches("notes.txt").count(), 2, "{listed}");

    // 3. A longer command, streamed while it runs.
    let command = api.bash(&id, "for i in 1 2 3; do echo tick $i; sleep 0.2; done; exit 5").await?;
    let logs = format!("/v1/sandboxes/{id}/commands/{command}/logs");
    let mut stream = api.request("GET", &logs).send().await?;
    let content_type = stream.headers()["content-type"].to_str()?.to_owned();
    assert_eq!(content_type, "application/x-ndjson; charset=utf-8");
    let first = stream.chunk().await?.expect("a first record");
    assert!(String::from_utf8_lossy(&first).contains("tick 1"));
    assert_eq!(api.status(&id, &command).await?["state"], "running", "the first came live");
    let mut rest = String::new();
    while let Some(chunk) = stream.chunk().await? {
        rest.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(rest.contains("tick 3"));
    assert_eq!(api.wait(&id, &command).await?, 5);

    // 4. A server on 127.0.0.1 inside, reached from outside.
    api.write(&id, "/vercel/sandbox/workspace/index.html", b"served from inside").await?;
    api.bash(&id, "exec python3 -m http.server 3000 --bind 127.0.0.1").await?;
    let port = api.call("GET", &format!("/v1/sandboxes/{id}/ports/3000"), None).await?;
    assert_eq!(port["found"], json!(true));
    let url = port["url"].as_str().unwrap().to_owned();
    wait_for("the page", Duration::from_secs(20), || async {
        let Ok(answer) = reqwest::get(format!("{url}/index.html")).await else { return false };
        answer.text().await.is_ok_and(|text| text == "served from inside")
    })
    .await?;
    let other = api.call("GET", &format!("/v1/sandboxes/{id}/ports/3001"), None).await?;
    assert_eq!(other, json!({ "found": false }));

    // Reconnecting by key, then stopping, twice.
    let again = json!({ "sessionKey": "chat:1" });
    let again = api.call("POST", "/v1/sandboxes", Some(again)).await?;
    assert_eq!(again, json!({ "sandboxId": id, "created": false }));
    api.stop(&id).await?;
    api.stop(&id).await?;
    let (status, body) =
        api.try_call("GET", &format!("/v1/sandboxes/{id}/ports/3000"), None).await?;
    assert_eq!((status, body["error"].as_str()), (404, Some("Not found")));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_sandbox_is_cleaned_up_and_leaves_a_post_mortem() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({ "sessionKey": "ttl", "idleTtlMs": 10_000, "network": { "mode": "none" } });
    let id = api.create_with(body).await?;
    wait_for("the idle sandbox to go", Duration::from_secs(40), || async {
        api.sandboxes().await.is_ok_and(|all| all.iter().all(|s| s["id"] != json!(id)))
    })
    .await?;
    let record = api.call("GET", &format!("/v1/sandboxes/{id}/post-mortem"), None).await?;
    assert_eq!(record["cause"]["kind"], "idle_expired");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_errors_have_the_contracts_texts() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("errors").await?;
    let commands = format!("/v1/sandboxes/{id}/commands");
    let cases = [
        ("/v1/sandboxes".to_owned(), json!({}), "sessionKey is required."),
        (commands.clone(), json!({ "cmd": "sh", "args": [] }), "Only cmd=\"bash\" is supported."),
        (commands, json!({ "cmd": "bash", "args": ["x"] }), "bash args must include -lc <script>."),
        (format!("/v1/sandboxes/{id}/files:write"), json!({}), "files is required."),
        (
            format!("/v1/sandboxes/{id}/files:write"),
            json!({ "files": [{ "path": "/etc/passwd", "contentBase64": "" }] }),
            "Path must be under /vercel/sandbox/workspace",
        ),
    ];
    for (path, body, text) in cases {
        let (status, answer) = api.try_call("POST", &path, Some(body)).await?;
        assert_eq!((status, answer["error"].as_str()), (400, Some(text)), "{path}: {answer}");
        assert!(answer["requestId"].is_string(), "{answer}");
    }
    for (method, path) in [("GET", "/v1/nothing"), ("PATCH", "/v1/sandboxes")] {
        let (status, answer) = api.try_call(method, path, None).await?;
        assert_eq!((status, answer["error"].as_str()), (404, Some("Not found")), "{method} {path}");
    }
    daemon.finish().await
}
