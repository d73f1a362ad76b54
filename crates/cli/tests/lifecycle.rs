//! One sandbox per key, limits that never cost a busy sandbox, and nothing left behind.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_creates_with_one_key_give_one_sandbox() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({ "sessionKey": "shared", "network": { "mode": "none" } });
    let creates = (0..50).map(|_| {
        let (api, body) = (api.clone(), body.clone());
        tokio::spawn(async move { api.call("POST", "/v1/sandboxes", Some(body)).await })
    });
    let creates: Vec<_> = creates.collect();
    let mut ids = BTreeSet::new();
    let mut made = 0;
    for create in creates {
        let answer = create.await??;
        ids.insert(answer["sandboxId"].as_str().unwrap().to_owned());
        made += usize::from(answer["created"] == json!(true));
    }
    assert_eq!((ids.len(), made), (1, 1));
    assert_eq!(api.sandboxes().await?.len(), 1);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_idle_ones_make_room_and_busy_ones_never() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBOXD_MAX_CONCURRENT", "2"), ("SANDBANK_EVICT_IDLE", "true")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    let busy = api.create("busy").await?;
    let running = api.bash_within(&busy, "sleep 120", Duration::from_secs(200)).await?;
    let idle = api.create("idle").await?;
    let third = api.create("third").await?;
    let alive: BTreeSet<String> = ids(&api.sandboxes().await?);
    assert_eq!(alive, BTreeSet::from([busy.clone(), third.clone()]), "{idle} made room");

    api.bash_within(&third, "sleep 120", Duration::from_secs(200)).await?;
    let body = json!({ "sessionKey": "fourth", "network": { "mode": "none" } });
    let response = api.request("POST", "/v1/sandboxes").json(&body).send().await?;
    assert_eq!(response.status().as_u16(), 429);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(api.status(&busy, &running).await?["state"], "running");
    daemon.finish().await
}

fn ids(sandboxes: &[serde_json::Value]) -> BTreeSet<String> {
    sandboxes.iter().filter_map(|s| s["id"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_longer_than_the_idle_ttl_keeps_its_sandbox() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({ "sessionKey": "long", "idleTtlMs": 10_000, "network": { "mode": "none" } });
    let id = api.create_with(body).await?;
    let command = api.bash(&id, "sleep 14; echo still here").await?;
    assert_eq!(api.wait(&id, &command).await?, 0);
    let (_, out, _) = api.run(&id, "echo alive").await?;
    assert_eq!(out, "alive\n");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sandboxes_share_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let (a, b) = (api.create("a").await?, api.create("b").await?);
    api.bash(&a, "sleep 1234").await?;
    api.run(&a, "echo secret > private; echo secret > /tmp/private").await?;
    let probe = "cat private /tmp/private 2>/dev/null; ps -e -o args | grep -c '[s]leep 1234'";
    let (_, out, _) = api.run(&b, probe).await?;
    assert_eq!(out, "0\n");
    let (_, own, _) = api.run(&a, "cat private; ps -e -o args | grep -c '[s]leep 1234'").await?;
    assert_eq!(own, "secret\n1\n", "the positive control");
    daemon.finish().await
}
