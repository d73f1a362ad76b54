//! A runner that dies takes its commands along, and everybody is told.

use rustix::process::Signal;
use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};
use serde_json::json;

use crate::SANDBANK;
use crate::heard::Heard;
use crate::host::place;
use crate::place::{LIMIT, shell};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_runner_ends_every_stream_with_an_event_and_the_sandbox_with_a_reason()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let bystander = place(&daemon, "bystander").await?;
    let kept = bystander.start(shell("sleep 300")).await?;
    let victim = place(&daemon, "victim").await?;
    let command = victim.start(shell("while :; do echo tick; sleep 0.01; done")).await?;
    let mut readers = Vec::new();
    for _ in 0..5 {
        let mut stream = victim.stream(&command, "").await?;
        assert!(stream.chunk().await?.is_some());
        readers.push(tokio::spawn(async move {
            let mut rest = String::new();
            while let Some(chunk) = stream.chunk().await? {
                rest.push_str(&String::from_utf8_lossy(&chunk));
            }
            anyhow::Ok(rest)
        }));
    }
    let waiting = {
        let (victim, command) = (victim.clone(), command.clone());
        tokio::spawn(async move { victim.wait(&command).await })
    };
    daemon.signal_runner(&victim.sandbox, Signal::KILL)?;
    for reader in readers {
        let rest = tokio::time::timeout(LIMIT, reader).await???;
        let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap())?;
        assert_eq!((&last["type"], &last["ending"]["kind"]), (&json!("ending"), &json!("lost")));
        assert_eq!(last["exitCode"], json!(null), "nobody reaped it: {last}");
        assert!(last["ending"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
    let waited = tokio::time::timeout(LIMIT, waiting).await??;
    if let Ok(waited) = waited {
        assert_eq!(waited["ending"]["kind"], "lost", "{waited}");
    }
    let route = format!("/v1/sandboxes/{}", victim.sandbox);
    wait_for("the post-mortem", LIMIT, || async {
        let answer = victim.api.try_call("GET", &format!("{route}/post-mortem"), None).await;
        answer.is_ok_and(|(status, body)| {
            let told = body["reason"].as_str().is_some_and(|reason| !reason.is_empty());
            status == 200 && told && body["cause"]["kind"] == "runner_died"
        })
    })
    .await?;
    let (_, inspected) = victim.api.try_call("GET", &route, None).await?;
    assert_eq!(inspected["state"], "failed", "{inspected}");
    let (status, late) =
        victim.api.try_call("GET", &format!("{}/logs", victim.route(&command)), None).await?;
    assert!([404, 410].contains(&status), "{status}: {late}");
    assert_eq!(bystander.status(&kept).await?["state"], "running", "its neighbour lives on");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_stands_still_is_heard_again_when_it_goes_on() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let place = place(&daemon, "frozen").await?;
    let script = "for i in $(seq 200); do echo line $i; sleep 0.005; done; exit 23";
    let command = place.start(shell(script)).await?;
    let reader = tokio::spawn(Heard::default().all(place.stream(&command, "").await?));
    daemon.signal_runner(&place.sandbox, Signal::STOP)?;
    let health = place.api.call("GET", "/v1/health", None);
    let health = tokio::time::timeout(LIMIT, health).await?;
    daemon.signal_runner(&place.sandbox, Signal::CONT)?;
    health?;
    let heard = tokio::time::timeout(LIMIT, reader).await???;
    let expected: String = (1..=200).map(|i| format!("line {i}\n")).collect();
    assert_eq!((heard.text(), heard.exit_code), (expected, Some(23)));
    daemon.finish().await
}
