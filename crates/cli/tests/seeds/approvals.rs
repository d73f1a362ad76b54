//! Calls that wait for a person: what is decided, what is not, and what a kill of the daemon leaves.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::tools::{bash, configure, prepared};

const RULES: &str = "[app.bash_tools.approvals]\n\
    [[app.bash_tools.approvals.rules]]\naction = \"ask\"\ncommand = \"touch\"\nreason = \"it makes files\"\n\
    [[app.bash_tools.approvals.rules]]\naction = \"deny\"\ncommand = \"rm -rf\"\n";

type Asking = tokio::task::JoinHandle<anyhow::Result<(u16, String)>>;

/// A call, and the question that it waits for.
async fn asked(api: &Api, script: &str, query: &str) -> anyhow::Result<(Asking, Value)> {
    let body = json!({ "command": script });
    let request = api.request("POST", &format!("/api/tools/bash{query}")).json(&body);
    let asking = tokio::spawn(async move {
        let response = request.send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let list = api.call("GET", "/api/tools/approvals", None).await?;
        let mut waiting = list["approvals"].as_array().context("no list")?.iter();
        if let Some(found) = waiting.find(|row| row["status"] == "waiting") {
            return Ok((asking, found.clone()));
        }
        ensure!(Instant::now() < deadline, "nobody is asked: {list}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn decide(
    api: &Api,
    row: &Value,
    decision: &str,
    digest: &Value,
) -> anyhow::Result<(u16, Value)> {
    let id = row["id"].as_str().context("no id")?;
    let body = json!({ "decision": decision, "digest": digest });
    api.try_call("POST", &format!("/api/tools/approvals/{id}"), Some(body)).await
}

async fn has(api: &Api, file: &str) -> anyhow::Result<bool> {
    Ok(bash(api, &format!("test -e {file}")).await?["exitCode"] == 0)
}

async fn started() -> anyhow::Result<TestDaemon> {
    let mut daemon = prepared()?;
    configure(&daemon, RULES)?;
    daemon.launch().await?;
    Ok(daemon)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_about_exactly_the_call_that_was_made() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = started().await?;
    let api = daemon.api()?;
    let (asking, row) = asked(&api, "bash -c 'touch yes'; echo done", "?stream=ndjson").await?;
    assert_eq!(
        (&row["tool"], &row["input"]),
        (&json!("bash"), &json!({ "command": "bash -c 'touch yes'; echo done" }))
    );
    assert!(row["rule"].as_str().is_some_and(|rule| rule.contains("it makes files")), "{row}");
    let (status, answer) = decide(&api, &row, "allow", &json!("0".repeat(64))).await?;
    assert_eq!((status, &answer["code"]), (409, &json!("other_digest")), "{answer}");
    // Nobody without an administrator's token decides, not even who may call the tools.
    let path =
        format!("{}/api/tools/approvals/{}", daemon.url(), row["id"].as_str().context("no id")?);
    let body = json!({ "decision": "allow", "digest": row["digest"] });
    let stranger = reqwest::Client::new().post(path).json(&body).send().await?;
    assert_eq!(stranger.status().as_u16(), 401);
    assert!(!asking.is_finished());
    let (status, decided) = decide(&api, &row, "allow", &row["digest"]).await?;
    assert_eq!(
        (status, &decided["status"], &decided["decidedBy"]),
        (200, &json!("allowed"), &json!("admin"))
    );
    let (status, text) = asking.await??;
    assert_eq!(status, 200);
    let asked_first = text.lines().find(|line| line.contains("waiting_for_approval"));
    let told: Value = serde_json::from_str(asked_first.context("no word of it")?)?;
    assert_eq!(told["output"]["approval_id"], row["id"]);
    assert!(text.contains("\"done\\n\""), "{text}");
    assert!(has(&api, "yes").await?);
    let (status, answer) = decide(&api, &row, "deny", &row["digest"]).await?;
    assert_eq!((status, &answer["code"]), (409, &json!("already_decided")));

    let (asking, row) = asked(&api, "touch no", "").await?;
    assert_eq!(decide(&api, &row, "deny", &row["digest"]).await?.0, 200);
    let (status, text) = asking.await??;
    assert!(status == 403 && text.contains("A person said no"), "{status} {text}");
    let (status, answer) = api
        .try_call("POST", "/api/tools/bash", Some(json!({ "command": "cd /; sudo rm -r -f x" })))
        .await?;
    assert!(status == 403 && answer.to_string().contains("rm -rf"), "{answer}");
    assert!(!has(&api, "no").await?);
    let list = api.call("GET", "/api/tools/approvals", None).await?;
    let by_rule = |row: &&Value| row["status"] == "denied" && row["decidedBy"] == "rule";
    assert_eq!(
        list["approvals"].as_array().map(|rows| rows.iter().filter(by_rule).count()),
        Some(1),
        "{list}"
    );
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_decides_in_time_is_not_made() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = prepared()?;
    configure(&daemon, &RULES.replacen("approvals]\n", "approvals]\ntimeout_ms = 1000\n", 1))?;
    daemon.launch().await?;
    let api = daemon.api()?;
    let (asking, row) = asked(&api, "touch late", "").await?;
    let (status, text) = asking.await??;
    assert!(status == 403 && text.contains("Nobody allowed this call in time"), "{status} {text}");
    let path = format!("/api/tools/approvals/{}", row["id"].as_str().context("no id")?);
    let kept = api.call("GET", &path, None).await?;
    assert_eq!(
        (&kept["status"], &kept["decidedBy"]),
        (&json!("expired"), &json!("deadline")),
        "{kept}"
    );
    let (status, answer) = decide(&api, &row, "allow", &row["digest"]).await?;
    assert_eq!((status, &answer["code"]), (410, &json!("no_longer_waiting")), "{answer}");
    assert!(!has(&api, "late").await?);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waited_when_the_daemon_died_is_never_made() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = started().await?;
    let api = daemon.api()?;
    let (asking, row) = asked(&api, "touch never", "").await?;
    daemon.kill_9()?;
    assert!(asking.await?.is_err(), "somebody answered");
    daemon.launch().await?;
    let api = daemon.api()?;
    let path = format!("/api/tools/approvals/{}", row["id"].as_str().context("no id")?);
    assert_eq!(api.call("GET", &path, None).await?["status"], "abandoned");
    let (status, answer) = decide(&api, &row, "allow", &row["digest"]).await?;
    assert_eq!((status, &answer["code"]), (410, &json!("no_longer_waiting")), "{answer}");
    assert!(answer.to_string().contains("restarted"), "{answer}");
    assert!(!has(&api, "never").await?);

    // Whoever goes away takes the question along.
    let (asking, row) = asked(&api, "touch gone", "").await?;
    asking.abort();
    let path = format!("/api/tools/approvals/{}", row["id"].as_str().context("no id")?);
    let deadline = Instant::now() + Duration::from_secs(60);
    while api.call("GET", &path, None).await?["status"] != "withdrawn" {
        ensure!(Instant::now() < deadline, "it still waits");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!has(&api, "gone").await?);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_profile_of_the_workspace_runs_where_calls_are_judged() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = started().await?;
    let api = daemon.api()?;
    for name in [".bash_profile", ".bashrc", ".bash_logout"] {
        let input = json!({ "path": name, "content": format!("> ran{name}\n") });
        api.call("POST", "/api/tools/writeFile", Some(input)).await?;
    }
    assert_eq!(bash(&api, "ls -d ran*; exit 0").await?["stdout"], "");

    // Where nothing is judged, it is a login shell like any other.
    daemon.terminate().await?;
    configure(&daemon, "")?;
    daemon.launch().await?;
    let api = daemon.api()?;
    assert_eq!(bash(&api, "exit 0").await?["exitCode"], 0);
    assert!(has(&api, "ran.bash_profile").await? && has(&api, "ran.bash_logout").await?);
    daemon.finish().await
}
