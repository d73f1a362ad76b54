//! A daemon that meets what another version left: a runner that speaks another protocol, and a
//! database of a later schema. Both are refused by name, and nothing is lost by it.

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbank_protocol::PROTOCOL_VERSION;
use sandbank_test_support::{
    Api, TestDaemon, eventually, free_port, skip_over_docker, skip_unless_root,
};
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

use crate::SANDBANK;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_of_another_protocol_is_refused_by_name_and_kept() -> anyhow::Result<()> {
    let reason = "a runner has no socket in whose place another could be put";
    if skip_unless_root() || skip_over_docker(reason) {
        return Ok(());
    }
    let mut daemon = TestDaemon::start_with(SANDBANK, &[("SANDBANK_POOL_SIZE", "1")]).await?;
    let api = daemon.api()?;
    let id = api.create("old").await?;
    let busy = api.bash(&id, "echo kept > file; sleep 3; echo done >> file; exit 9").await?;
    daemon.terminate().await?;

    // In the place of its socket, somebody who shakes hands as an older runner would.
    let socket = daemon.data_dir().join("machines").join(&id).join("runner.sock");
    std::fs::rename(&socket, socket.with_extension("real"))?;
    let listener = tokio::net::UnixListener::bind(&socket)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    let older = tokio::spawn(speak_older(listener));
    daemon.launch().await?;
    let answer = eventually("a refusal", SOON, || refusal(&api, &id)).await?;
    let text = answer.to_string();
    let versions =
        [format!("protocol {}", PROTOCOL_VERSION - 1), format!("speaks {PROTOCOL_VERSION}")];
    ensure!(versions.iter().all(|version| text.contains(version)), "{text}");
    ensure!(answer["hint"].as_str().is_some_and(|hint| hint.contains("version")), "{text}");
    let info = api.call("GET", &format!("/v1/sandboxes/{id}"), None).await?;
    ensure!(info["state"] == "running", "{info}");

    // The version that made it comes back, and finds everything.
    older.abort();
    daemon.terminate().await?;
    std::fs::rename(socket.with_extension("real"), &socket)?;
    daemon.launch().await?;
    ensure!(api.wait(&id, &busy).await? == 9, "the command's ending was lost");
    let (_, out, _) = api.run(&id, "cat file").await?;
    ensure!(out == "kept\ndone\n", "{out}");
    daemon.finish().await
}

async fn refusal(api: &Api, id: &str) -> Option<Value> {
    let route = format!("/v1/sandboxes/{id}/commands");
    let body = json!({ "argv": ["true"], "detached": true });
    let (status, answer) = api.try_call("POST", &route, Some(body)).await.ok()?;
    (status == 409 && answer["code"] == "incompatible_runner").then_some(answer)
}

async fn speak_older(listener: tokio::net::UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service_fn(|_| async {
            let hello = json!({
                "protocol": PROTOCOL_VERSION - 1, "runner_version": "0.0.1", "epoch": "e",
                "started_at_ms": 1, "workspace": "/vercel/sandbox/workspace",
            });
            let body = Full::new(Bytes::from(hello.to_string()));
            Ok::<_, Infallible>(hyper::Response::new(body))
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused_by_name_and_kept() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start_with(SANDBANK, &[("SANDBANK_POOL_SIZE", "1")]).await?;
    let api = daemon.api()?;
    let id = api.create("kept").await?;
    api.write(&id, "/workspace/file", b"kept").await?;
    daemon.terminate().await?;
    let known = set_schema(&daemon, 4711).await?;
    let output = Command::new("timeout")
        .args(["--kill-after=5", "30", SANDBANK, "serve"])
        .env("SANDBANK_DATA_DIR", daemon.data_dir())
        .env("SANDBOXD_PORT", free_port()?.to_string())
        .envs(daemon.settings())
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(65), "{output:?}");
    let words = ["schema 4711".to_owned(), format!("up to {known}"), "hint:".to_owned()];
    ensure!(words.iter().all(|word| text.contains(word.as_str())), "{text}");

    set_schema(&daemon, known).await?;
    daemon.launch().await?;
    ensure!(api.read(&id, "/workspace/file").await?.as_deref() == Some(b"kept"), "lost");
    daemon.finish().await
}

/// Gives the version that was there.
async fn set_schema(daemon: &TestDaemon, version: i64) -> anyhow::Result<i64> {
    let options = SqliteConnectOptions::new().filename(daemon.data_dir().join("sandbank.db"));
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
    let before = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await?;
    let set = format!("PRAGMA user_version = {version}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut connection).await?;
    connection.close().await?;
    Ok(before)
}
