//! Every step of creating, publishing and deleting, cut short: by `kill -9` of the daemon, and by
//! a failure of the step. The steps come from the table of fault points; one that is never
//! reached fails the test.

use std::os::unix::process::ExitStatusExt;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use sandbank_fault_points::{Owner, Point, Stage};
use sandbank_test_support::{Api, TestDaemon, eventually, is_over_docker, skip_unless_root};
use serde_json::{Value, json};

use crate::SANDBANK;
use crate::objects::{SETTLED, agree};

/// Daemons at the same time; they mostly wait.
const AT_ONCE: usize = 3;
const PORT: u16 = 4000;
const WORKSPACE: &str = "/vercel/sandbox/workspace";

/// There are few networks for a host's instances, and other tests take some.
static WIRED: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_at_any_step_loses_nothing_and_leaves_nothing() -> anyhow::Result<()> {
    at_every_point("kill").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_anywhere_loses_nothing_and_leaves_nothing() -> anyhow::Result<()> {
    at_every_point("error").await
}

async fn at_every_point(action: &'static str) -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let engine = match is_over_docker() {
        true => Owner::Docker,
        false => Owner::Native,
    };
    // What removes a kept workspace is reached by `engine-native/tests/workspace_faults.rs`.
    let points = Point::ALL.iter().filter(|point| {
        point.stage() != Stage::Remove && [Owner::Any, engine].contains(&point.owner())
    });
    let runs = points.map(|point| async move {
        let fault = format!("{}:{action}", point.name());
        interrupted(*point, action, &fault).await.err().map(|error| format!("{fault}: {error:#}"))
    });
    let failed: Vec<_> = futures_util::stream::iter(runs)
        .buffer_unordered(AT_ONCE)
        .filter_map(async |e| e)
        .collect()
        .await;
    ensure!(failed.is_empty(), "{} points:\n{}", failed.len(), failed.join("\n\n"));
    Ok(())
}

async fn interrupted(point: Point, action: &str, fault: &str) -> anyhow::Result<()> {
    let wired = matches!(
        point,
        Point::NetworkTaken | Point::Cloned | Point::NetworkReleased | Point::BridgeReady
    );
    let _turn = if wired { Some(WIRED.acquire().await?) } else { None };
    let mut body = body(if wired { "default" } else { "none" });
    if point.stage() == Stage::Keep {
        body["workspace"] = json!("project");
    }
    let settings = [("SANDBANK_POOL_SIZE", "1"), ("SANDBANK_FAULT", fault)];
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let before = match point.stage() {
        Stage::Create | Stage::Keep | Stage::Remove => None,
        Stage::Publish | Stage::Delete => Some(created(&api, &body).await?),
    };
    if let Some(id) = &before {
        api.write(id, &format!("{WORKSPACE}/kept"), b"before the fault").await?;
    }
    let reached = || {
        let log = std::fs::read_to_string(daemon.log_path())?;
        anyhow::Ok(log.contains(&format!("fault at {}:", point.name())))
    };
    ensure!(!reached()?, "it was reached before the attempt");
    let answer = attempt(&api, point.stage(), &body, before.as_deref()).await;
    ensure!(reached()?, "it was never reached: {answer:?}");

    if action == "kill" {
        ensure!(answer.is_err(), "a killed daemon answered {answer:?}");
        let status = daemon.died().await?;
        ensure!(status.signal() == Some(9), "the daemon ended with {status}");
        daemon.set("SANDBANK_FAULT", None);
        daemon.launch().await?;
    } else {
        judge_failure(point, answer.context("a failed step must be answered")?)?;
    }
    let left = agree(&daemon, &api).await?;
    match point.stage() {
        // It was never acknowledged, so it is whole or not there.
        Stage::Create | Stage::Keep | Stage::Remove => ensure!(left.len() <= 1, "{left:?}"),
        Stage::Publish => ensure!(left.contains(before.as_ref().unwrap()), "the sandbox is gone"),
        Stage::Delete => ensure!(left.is_empty(), "{left:?} came back"),
    }
    usable(&api, point.stage(), &body, before.as_deref()).await?;
    daemon.finish().await
}

fn body(network: &str) -> Value {
    json!({ "sessionKey": "key", "ports": [PORT], "network": { "mode": network } })
}

async fn created(api: &Api, body: &Value) -> anyhow::Result<String> {
    let (status, answer) = create(api, body).await?;
    ensure!(status < 300, "a create gave {status}: {answer}");
    Ok(answer["sandboxId"].as_str().context("no sandboxId")?.to_owned())
}

/// Asks again as long as other daemons have all the networks: no step was taken then.
async fn create(api: &Api, body: &Value) -> anyhow::Result<(u16, Value)> {
    eventually("a network for this instance", SETTLED, || async {
        let answer = api.try_call("POST", "/v1/sandboxes", Some(body.clone())).await;
        let unavailable = |(_, answer): &(u16, Value)| answer["code"] == "control_unavailable";
        (!answer.as_ref().is_ok_and(unavailable)).then_some(answer)
    })
    .await?
}

/// The call that meets the fault: status and answer, or a broken connection.
async fn attempt(
    api: &Api,
    stage: Stage,
    body: &Value,
    id: Option<&str>,
) -> anyhow::Result<(u16, Value)> {
    let id = id.unwrap_or_default();
    match stage {
        Stage::Create | Stage::Keep | Stage::Remove => create(api, body).await,
        Stage::Publish => {
            api.try_call("GET", &format!("/v1/sandboxes/{id}/ports/{PORT}"), None).await
        }
        Stage::Delete => api.try_call("POST", &format!("/v1/sandboxes/{id}:stop"), None).await,
    }
}

/// A create and a port say that they failed; a delete is tried again until it is done.
fn judge_failure(point: Point, (status, answer): (u16, Value)) -> anyhow::Result<()> {
    let expected = match point.stage() {
        Stage::Create | Stage::Publish | Stage::Keep | Stage::Remove => {
            (500..600).contains(&status)
        }
        Stage::Delete => (200..300).contains(&status),
    };
    ensure!(expected, "the answer was {status}: {answer}");
    Ok(())
}

/// The same key again gives a sandbox that works, with a port that stays.
async fn usable(api: &Api, stage: Stage, body: &Value, before: Option<&str>) -> anyhow::Result<()> {
    let id = created(api, body).await?;
    let (code, out, _) = api.run(&id, "echo works; cat kept 2>/dev/null || true").await?;
    if stage == Stage::Publish {
        ensure!(before == Some(id.as_str()), "the key names another sandbox");
        ensure!(out == "works\nbefore the fault", "a file was lost: {out}");
    }
    ensure!(code == 0 && out.starts_with("works"), "{code}: {out}");
    let route = format!("/v1/sandboxes/{id}/ports/{PORT}");
    let first = api.call("GET", &route, None).await?;
    let second = api.call("GET", &route, None).await?;
    ensure!(first["hostPort"].is_u64() && first == second, "{first} and then {second}");
    Ok(())
}
