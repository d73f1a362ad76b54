//! Kept workspaces, end to end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use anyhow::ensure;
use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

fn keeping(key: &str, workspace: &str) -> Value {
    json!({ "sessionKey": key, "network": { "mode": "none" }, "workspace": workspace })
}

async fn describe(api: &Api, id: &str) -> anyhow::Result<Value> {
    api.call("GET", &format!("/v1/sandboxes/{id}"), None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_under_a_sandbox_loses_nothing_of_its_kept_workspace() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create_with(keeping("first", "project")).await?;
    let (code, _, err) = api.run(&id, "mkdir -p src; echo kept > src/file").await?;
    ensure!(code == 0, "{err}");
    let script = "for i in $(seq 400); do echo line $i >> log; sleep 0.01; done; sync";
    let command = api.bash(&id, script).await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    ensure!(describe(&api, &id).await?["workspace"] == "project");
    ensure!(describe(&api, &id).await?["state"] == "running");
    ensure!(api.wait(&id, &command).await? == 0);

    // Another sandbox at the same time, and then only that one.
    let other = api.create_with(keeping("second", "project")).await?;
    let (_, out, _) = api.run(&other, "cat src/file; wc -l < log; stat -c %u src/file").await?;
    ensure!(out == "kept\n400\n1000\n", "{out}");
    api.stop(&id).await?;
    api.write(&other, "/workspace/late", b"written by the second").await?;
    api.stop(&other).await?;

    // All are gone, and so is the daemon, in order this time.
    ensure!(daemon.terminate().await? == Some(0));
    daemon.launch().await?;
    let third = api.create_with(keeping("first", "project")).await?;
    ensure!(third != id, "the key is free again");
    let (_, out, _) = api.run(&third, "cat src/file late").await?;
    ensure!(out == "kept\nwritten by the second", "{out}");
    let own = api.create("own").await?;
    ensure!(describe(&api, &own).await?["workspace"].is_null());
    let (_, out, _) = api.run(&own, "ls").await?;
    ensure!(out.is_empty(), "{out}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_none_are_refused_and_other_workspaces_are_conflicts() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let bad = ["../machines", "/etc", "..", ".trash", "a/b", "A", "x", "", "a\u{0}b", "-a", "a-"];
    let bad = bad.map(Value::from).into_iter().chain([json!(7), json!(["project"]), json!({})]);
    for name in bad {
        let mut body = keeping("key", "project");
        body["workspace"] = name.clone();
        let (status, answer) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
        ensure!((status, &answer["code"]) == (400, &json!("bad_field")), "{name}: {answer}");
    }
    ensure!(api.sandboxes().await?.is_empty());
    let id = api.create_with(keeping("key", "project")).await?;
    ensure!(api.create_with(keeping("key", "project")).await? == id);
    let other = api.try_call("POST", "/v1/sandboxes", Some(keeping("key", "other"))).await?;
    ensure!(other.0 == 409, "{other:?}");
    daemon.finish().await
}

fn output(mut command: Command, args: &[&str]) -> anyhow::Result<String> {
    let output = command.args(args).output()?;
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{args:?}: {out}{err}");
    Ok(out.into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_comes_back_to_a_workspace_by_its_name() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let run = ["run", "--network", "none", "--workspace", "project", "--", "sh", "-c"];
    let with = |script| [&run[..], &[script]].concat();
    output(daemon.cli(), &with("echo kept > file"))?;
    ensure!(output(daemon.cli(), &with("cat file"))? == "kept\n");
    let refused = daemon.cli().args(["run", "--workspace", "../x", "--", "true"]).output()?;
    ensure!(refused.status.code() == Some(64), "{refused:?}");

    let api = daemon.api()?;
    let id = api.create_with(keeping("shown", "project")).await?;
    let shown = output(daemon.cli(), &["inspect", &id])?;
    ensure!(shown.lines().any(|l| l.starts_with("workspace") && l.ends_with("project")), "{shown}");

    let listed = output(daemon.cli(), &["workspace", "ls"])?;
    let row = listed.lines().find(|line| line.starts_with("project")).unwrap_or_default();
    ensure!(listed.starts_with("NAME\tSIZE\tQUOTA\tSANDBOXES\n") && row.ends_with(&id), "{listed}");
    let listed: Value =
        serde_json::from_str(&output(daemon.cli(), &["workspace", "ls", "--json"])?)?;
    ensure!(listed[0]["id"] == "project" && listed[0]["in_use_by"] == json!([id]), "{listed}");
    let refused = |args: &[&str], said: &str, hint: &str| -> anyhow::Result<()> {
        let output = daemon.cli().args(args).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(1), "{text}");
        ensure!(text.contains(said) && text.contains(hint), "{text}");
        Ok(())
    };
    refused(&["workspace", "rm", "project"], "is in use by sandbox", "`sandbank rm`")?;
    refused(&["workspace", "rm", "other"], "no workspace \"other\"", "`sandbank workspace ls`")?;
    api.stop(&id).await?;
    ensure!(output(daemon.cli(), &["workspace", "rm", "project"])? == "project\n");
    ensure!(output(daemon.cli(), &["workspace", "ls", "--json"])?.trim() == "[]");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caretaker_leaves_a_workspace_the_quota_it_has() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let mut body = keeping("first", "project");
    body["resources"] = json!({ "diskMb": 48 });
    let (status, made) = api.try_call("POST", "/v1/sandboxes", Some(body)).await?;
    if status == 503 && made["code"] == "control_unavailable" {
        println!("skipped: no quota is enforced here: {made}");
        return daemon.finish().await;
    }
    ensure!(status == 200, "{made}");
    api.stop(made["sandboxId"].as_str().unwrap_or_default()).await?;
    let write = json!({ "path": "file", "text": "x" });
    for (workspace, quota) in [("project", 48u64 << 20), ("new-one", 8192 << 20)] {
        let route = format!("/v1/workspaces/{workspace}/fs/write");
        api.call("POST", &route, Some(write.clone())).await?;
        let listed = api.call("GET", "/v1/workspaces", None).await?;
        let is_it = |one: &&Value| one["id"] == workspace;
        let seen = listed["workspaces"].as_array().and_then(|all| all.iter().find(is_it));
        ensure!(seen.is_some_and(|one| one["quota_bytes"] == quota), "{workspace}: {listed}");
    }
    daemon.finish().await
}
