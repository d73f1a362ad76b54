//! Ready machines, through HTTP.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use sandbank_test_support::{
    Api, SUITE_IMAGE, TestDaemon, free_port, is_over_docker, skip_unless_root, wait_for,
};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const SOON: Duration = Duration::from_secs(30);
const POOL: &str = "SANDBANK_POOL";

fn image() -> &'static str {
    if is_over_docker() { SUITE_IMAGE } else { "host" }
}

fn two() -> String {
    format!("{}@none=2", image())
}

/// What the pool is called in the metrics.
fn labels() -> String {
    format!("{{image=\"{}\",network=\"none\"}}", image())
}

async fn metrics(api: &Api) -> anyhow::Result<String> {
    Ok(api.request("GET", "/metrics").send().await?.error_for_status()?.text().await?)
}

async fn full(api: &Api) -> anyhow::Result<()> {
    wait_for("the pool to be full", SOON, || async {
        let ready = format!("sandbank_pool_ready{} 2", labels());
        metrics(api).await.is_ok_and(|text| text.lines().any(|line| line == ready))
    })
    .await
}

async fn create(api: &Api, key: &str) -> anyhow::Result<Value> {
    let body = json!({
        "sessionKey": key, "network": { "mode": "none" }, "env": { "COLOUR": format!("of {key}") }
    });
    api.call("POST", "/v1/sandboxes", Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_machine_is_taken_with_its_limits_in_force_and_replaced() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let limits = [("SANDBANK_DEFAULT_PIDS", "40"), ("SANDBANK_DEFAULT_MEMORY_MB", "256")];
    let daemon = TestDaemon::start_with(SANDBANK, &[(POOL, &two()), limits[0], limits[1]]).await?;
    let api = daemon.api()?;
    full(&api).await?;
    let ready = daemon.machines()?;
    assert!(api.sandboxes().await?.is_empty(), "a member is no sandbox");

    let made = create(&api, "one").await?;
    let id = made["sandboxId"].as_str().unwrap();
    assert_eq!((&made["created"], &made["acquireSource"]), (&json!(true), &json!("pool")));
    assert!(ready.contains(id));
    let found = create(&api, "one").await?;
    assert_eq!(found, json!({ "sandboxId": id, "created": false }));
    assert_eq!(api.run(id, "echo $COLOUR; pwd").await?.1, "of one\n/vercel/sandbox/workspace\n");

    let report = api.call("GET", &format!("/v1/sandboxes/{id}/containment"), None).await?;
    assert_eq!(report["contained"], true, "{report:#}");
    let (_, out, _) = api.run(id, "(for i in $(seq 60); do sleep 5 & done) 2>&1 | head -1").await?;
    assert!(out.contains("fork"), "60 processes were started within a limit of 40: {out:?}");
    let hog = "head -c 600m /dev/zero | tail > /dev/null; echo ${PIPESTATUS[1]}";
    assert_eq!(api.run(id, hog).await?.1, "137\n", "more memory was had than the limit");

    full(&api).await?;
    let text = metrics(&api).await?;
    let claimed = format!("sandbank_pool_claimed_total{} 1", labels());
    for line in [
        "sandbank_sandboxes{state=\"running\"} 1",
        "sandbank_creates_total{source=\"pool\"} 1",
        "sandbank_creates_total{source=\"cold\"} 0",
        claimed.as_str(),
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
    }
    let mut other = json!({ "sessionKey": "two", "network": { "mode": "none" } });
    other["resources"] = json!({ "pids": 41 });
    let cold = api.call("POST", "/v1/sandboxes", Some(other)).await?;
    assert_eq!(cold["acquireSource"], "cold");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemons_pool_is_replaced_and_nothing_is_left_in_the_end() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start_with(SANDBANK, &[(POOL, &two())]).await?;
    let api = daemon.api()?;
    full(&api).await?;
    let id = create(&api, "kept").await?["sandboxId"].as_str().unwrap().to_owned();
    full(&api).await?;
    daemon.kill_9()?;
    let mut left = daemon.machines()?;
    assert_eq!((left.remove(&id), left.len()), (true, 2));
    daemon.launch().await?;
    full(&api).await?;
    let now = daemon.machines()?;
    assert!(now.is_disjoint(&left) && now.contains(&id) && now.len() == 3, "{left:?} {now:?}");
    assert_eq!(api.run(&id, "echo $COLOUR").await?.1, "of kept\n");
    let log = std::fs::read_to_string(daemon.log_path())?;
    assert_eq!(log.matches("taking back a pooled machine").count(), 2, "{}", daemon.log_tail());
    assert!(!log.contains("without an owner"), "known leftovers are no surprise");
    daemon.finish().await
}

/// A create that takes a ready machine has two moments that matter: before its row, and after.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_while_it_hands_out_a_machine_leaves_all_or_nothing() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    for (point, stays) in [("create.engine_created", false), ("create.row_inserted", true)] {
        let fault = format!("{point}:kill");
        let pool = two();
        let settings = [(POOL, pool.as_str()), ("SANDBANK_FAULT", fault.as_str())];
        let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
        let api = daemon.api()?;
        full(&api).await?;
        let ready = daemon.machines()?;
        assert!(create(&api, "one").await.is_err(), "a killed daemon answered");
        assert_eq!(daemon.died().await?.signal(), Some(9));
        daemon.set("SANDBANK_FAULT", None);
        daemon.launch().await?;
        full(&api).await?;
        let sandboxes = api.sandboxes().await?;
        assert_eq!(sandboxes.len(), usize::from(stays), "{point}: {sandboxes:?}");
        let kept = daemon.machines()?.intersection(&ready).count();
        assert_eq!(kept, usize::from(stays), "{point}");
        let made = create(&api, "one").await?;
        assert_eq!(made["created"], !stays, "{point}");
        let id = made["sandboxId"].as_str().unwrap();
        assert_eq!(api.run(id, "echo $COLOUR").await?.1, "of one\n", "{point}");
        daemon.finish().await?;
    }
    Ok(())
}

#[test]
fn a_command_without_a_server_keeps_no_pool() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::prepare(SANDBANK, &[(POOL, &two())])?;
    let run = |words: &[&str]| {
        let mut command = Command::new(SANDBANK);
        command
            .args(["run", "--network", "none", "--"])
            .args(words)
            .env("SANDBANK_DATA_DIR", daemon.data_dir())
            .env("SANDBANK_PORT", free_port().unwrap().to_string())
            .envs(daemon.settings())
            .env_remove("SANDBANK_URL")
            .env_remove("SANDBANK_TOKEN")
            .stdin(Stdio::null())
            .spawn()
    };
    // With the self-test, whose canaries are machines, too.
    assert_eq!(run(&["true"])?.wait()?.code(), Some(0));
    let mut child = run(&["sleep", "2"])?;
    let mut seen = BTreeSet::new();
    let status = loop {
        seen.extend(daemon.machines()?);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20)); // Between two looks, until it has ended.
    };
    assert_eq!(status.code(), Some(0));
    assert_eq!(seen.len(), 1, "{seen:?}");
    let left = daemon.residue()?;
    assert!(left.is_empty(), "left on the host: {left:#?}");
    Ok(())
}
