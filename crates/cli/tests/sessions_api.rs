//! Sessions in real sandboxes: what `pwd` says, what a timeout ends, and a daemon that is killed in the
//! middle of a command.

use std::time::Duration;

use sandbank_test_support::{Api, TestDaemon, skip_unless_root, wait_for};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const SOON: Duration = Duration::from_secs(30);

async fn session(api: &Api, body: Value) -> anyhow::Result<String> {
    let made = api.call("POST", "/v1/sessions", Some(body)).await?;
    Ok(format!("/v1/sessions/{}", made["id"].as_str().unwrap_or_default()))
}

async fn exec(api: &Api, session: &str, cmd: &str) -> anyhow::Result<Value> {
    let body = json!({ "cmd": cmd, "timeout_ms": 60_000 });
    api.call("POST", &format!("{session}/exec"), Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_has_one_name_and_outlives_shell_and_daemon() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let s = session(&api, json!({})).await?;
    let first = exec(&api, &s, "pwd; echo $PWD; cat /proc/sys/kernel/hostname >/dev/null").await?;
    assert_eq!(
        (&first["output"], &first["cwd"]),
        (&json!("/workspace\n/workspace"), &json!("/workspace"))
    );
    let deeper = exec(&api, &s, "mkdir -p d/e && cd d/e && export A=1 && pwd").await?;
    assert_eq!(
        (&deeper["output"], &deeper["cwd"]),
        (&json!("/workspace/d/e"), &json!("/workspace/d/e"))
    );
    let died = exec(&api, &s, "exit 3").await?;
    assert_eq!((&died["exit_code"], &died["cwd"]), (&json!(3), &json!("/workspace/d/e")));
    assert_eq!(exec(&api, &s, "pwd; echo $A").await?["output"], "/workspace/d/e\n1");
    assert_eq!(exec(&api, &s, "cd /tmp").await?["cwd"], "/tmp");

    daemon.kill_9()?;
    daemon.launch().await?;
    let list = api.call("GET", "/v1/sessions", None).await?;
    assert_eq!(
        (&list[0]["cwd"], &list[0]["status"]),
        (&json!("/tmp"), &json!("running")),
        "{list}"
    );
    assert_eq!(api.call("GET", &s, None).await?["cwd"], "/tmp");
    assert_eq!(exec(&api, &s, "echo $A").await?["output"], "1");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_in_the_middle_of_a_streamed_command_loses_nothing_of_the_session()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let s = session(&api, json!({ "ttl_seconds": 7200 })).await?;
    let before = api.call("GET", &s, None).await?;
    let cmd =
        "echo begun; n=0; for i in $(seq 200); do n=$((n + 1)); sleep 0.01; done; echo $n >sum";
    let request = api.request("POST", &format!("{s}/exec/stream")).json(&json!({ "cmd": cmd }));
    let mut response = request.send().await?;
    let chunk = response.chunk().await?.unwrap_or_default();
    assert!(chunk.starts_with(b"event: chunk\ndata: {\"chunk\":\"begun"), "{chunk:?}");
    daemon.kill_9()?;
    assert!(response.chunk().await.is_err(), "a stream that breaks off is no end");
    daemon.launch().await?;
    // Takes its turn after the one that still runs.
    assert_eq!(exec(&api, &s, "cat sum; echo $n").await?["output"], "200\n200");
    let after = api.call("GET", &s, None).await?;
    assert_eq!((&after["id"], &after["created_at"]), (&before["id"], &before["created_at"]));
    assert!(after["expires_at"].as_str() > before["expires_at"].as_str(), "{before}\n{after}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_all_that_the_command_started_and_nothing_else() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let s = session(&api, json!({})).await?;
    exec(&api, &s, "x=5; sleep 4321 &").await?;
    let cmd = "setsid sleep 8765 & (sleep 8766 &); touch begun; sleep 8767; echo never";
    let body = json!({ "cmd": cmd, "timeout_ms": 1_000 });
    let (status, answer) = api.try_call("POST", &format!("{s}/exec"), Some(body)).await?;
    assert_eq!((status, &answer["error_code"]), (504, &json!("COMMAND_TIMEOUT")), "{answer}");
    let look = "ls begun; echo $x; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | \
                grep -o 'sleep [0-9][0-9]*' | sort -u";
    assert_eq!(exec(&api, &s, look).await?["output"], "begun\n5\nsleep 4321");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_the_configured_limits_network_and_time() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [
        ("SANDKASTEN_MEM_LIMIT_MB", "300"),
        ("SANDKASTEN_MAX_EXEC_TIMEOUT_MS", "500"),
        ("SANDKASTEN_SESSION_TTL_SECONDS", "77"),
        ("SANDKASTEN_API_KEY", "sk-key"),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = Api::new(daemon.url(), "sk-key".to_owned());
    let s = session(&api, json!({})).await?;
    let stats = api.call("GET", &format!("{s}/stats"), None).await?;
    assert_eq!(stats["memory_limit"], 300 << 20);
    assert!(stats["memory_bytes"].as_u64() > Some(0), "{stats}");
    let links =
        exec(&api, &s, "ls /sys/class/net 2>/dev/null || tail -n +3 /proc/net/dev | cut -d: -f1")
            .await?;
    assert_eq!(links["output"].as_str().map(str::trim), Some("lo"), "no network");
    let body = json!({ "cmd": "sleep 60" });
    let (status, _) = api.try_call("POST", &format!("{s}/exec"), Some(body)).await?;
    assert_eq!(status, 504, "the server's own limit holds");
    let admin = daemon.api()?;
    let sandbox = admin.sandboxes().await?.remove(0);
    assert_eq!((&sandbox["idleTtlMs"], &sandbox["network"]), (&json!(77_000), &json!("none")));
    assert!(sandbox["key"].as_str().is_some_and(|key| key.starts_with("session:")), "{sandbox}");
    let (status, _) = api.try_call("GET", "/v1/tokens", None).await?;
    assert_eq!(status, 403, "the API key is no admin");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_by_itself_is_told_apart() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let short = session(&api, json!({ "ttl_seconds": 1 })).await?;
    let status = |s: String| {
        let api = api.clone();
        async move { api.call("GET", &s, None).await.ok().map(|seen| seen["status"].clone()) }
    };
    wait_for("it to expire", SOON, || async {
        status(short.clone()).await == Some(json!("expired"))
    })
    .await?;
    let body = || Some(json!({ "cmd": "true" }));
    let (code, answer) = api.try_call("POST", &format!("{short}/exec"), body()).await?;
    assert_eq!((code, &answer["error_code"]), (410, &json!("SESSION_EXPIRED")));

    let crashed = session(&api, json!({})).await?;
    exec(&api, &crashed, "true").await?;
    kill_machine(&api, &daemon).await?;
    wait_for("it to crash", SOON, || async {
        status(crashed.clone()).await == Some(json!("crashed"))
    })
    .await?;
    let (code, answer) = api.try_call("POST", &format!("{crashed}/exec"), body()).await?;
    assert_eq!((code, &answer["error_code"]), (410, &json!("SESSION_CRASHED")), "{answer}");
    daemon.finish().await
}

/// By the first process of the only one there is.
async fn kill_machine(api: &Api, daemon: &TestDaemon) -> anyhow::Result<()> {
    let sandboxes = api.sandboxes().await?;
    let id = sandboxes[0]["id"].as_str().unwrap_or_default().to_owned();
    daemon.signal_runner(&id, rustix::process::Signal::KILL)
}

/// With the kept workspaces that some engines have; without them it says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_outlives_its_sessions_and_is_reached_without_one() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let base = "/v1/workspaces/proj-1";
    let write = json!({ "path": "a/b", "text": "one" });
    let (made, answer) = api.try_call("POST", &format!("{base}/fs/write"), Some(write)).await?;
    if made == 409 {
        println!("skipped: this server keeps no workspaces: {answer}");
        return daemon.finish().await;
    }
    assert_eq!(made, 200, "{answer}");
    let s = session(&api, json!({ "workspace_id": "proj-1" })).await?;
    assert_eq!(api.call("GET", &s, None).await?["workspace_id"], "proj-1");
    assert_eq!(exec(&api, &s, "cat a/b; echo two >c").await?["output"], "one");
    let (status, answer) = api.try_call("DELETE", base, None).await?;
    assert_eq!((status, &answer["error_code"]), (409, &json!("CONFLICT")), "{answer}");
    api.call("DELETE", &s, None).await?;

    let list = api.call("GET", "/v1/workspaces", None).await?;
    assert_eq!(list["workspaces"][0]["id"], "proj-1");
    let entries = api.call("GET", &format!("{base}/fs"), None).await?;
    let expected = json!([{ "name": "a", "is_dir": true }, { "name": "c", "is_dir": false }]);
    assert_eq!(entries["entries"], expected);
    let read = api.call("GET", &format!("{base}/fs/read?path=c"), None).await?;
    assert_eq!((&read["content_base64"], &read["truncated"]), (&json!("dHdvCg=="), &json!(false)));
    let (status, _) =
        api.try_call("GET", &format!("{base}/fs/read?path=../../etc/passwd"), None).await?;
    assert_eq!(status, 400);
    let legacy = api.call("DELETE", "/v1/workspaces/sandkasten-ws-proj-1", None).await?;
    assert_eq!(legacy, json!({ "ok": true }));
    let (status, answer) = api.try_call("GET", &format!("{base}/fs"), None).await?;
    assert_eq!((status, &answer["error_code"]), (404, &json!("WORKSPACE_NOT_FOUND")));
    daemon.finish().await
}
