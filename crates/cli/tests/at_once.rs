//! Many creates at the same moment: all of them are served, a few at a time, and the metrics say how
//! many wait.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandbank_test_support::{Api, TestDaemon, is_over_docker, skip_unless_root};
use tokio::task::JoinSet;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How many are made at the same time is set, so that it is known.
const MAKING: u64 = 4;

fn creates() -> u64 {
    if is_over_docker() { 30 } else { 100 }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_creates_at_once_are_all_served_in_turns_that_are_reported() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let turns = MAKING.to_string();
    let settings = [("SANDBANK_CONCURRENT_CREATES", turns.as_str())];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    assert_eq!(under_way(&api).await?, (0, 0));
    let over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(watch(api.clone(), over.clone()));
    let mut creating = JoinSet::new();
    for number in 0..creates() {
        let api = api.clone();
        creating.spawn(async move {
            let id = api.create(&format!("one of many: {number}")).await?;
            let (code, out, _) = api.run(&id, &format!("echo {number}; exit 3")).await?;
            anyhow::ensure!((code, out.trim()) == (3, number.to_string().as_str()), "{code} {out}");
            anyhow::Ok(id)
        });
    }
    let mut ids = BTreeSet::new();
    while let Some(created) = creating.join_next().await {
        ids.insert(created??);
    }
    over.store(true, Ordering::SeqCst);
    let (most_waiting, most_making) = watching.await??;
    println!("at most {most_waiting} waited and {most_making} were made");
    assert_eq!(ids.len() as u64, creates(), "each got a sandbox of its own");
    // Looks now and then may miss them all; that somebody waits is for the turns' own tests to see.
    assert!(most_waiting <= creates() - MAKING, "{most_waiting} waited");
    assert!(most_making <= MAKING, "{most_making} were made at the same time");
    assert_eq!(under_way(&api).await?, (0, 0), "nobody waits any more");
    let states: Vec<_> = api.sandboxes().await?.iter().map(|one| one["state"].clone()).collect();
    assert!(states.len() as u64 == creates() && states.iter().all(|state| state == "running"));
    assert_eq!(daemon.machines()?, ids);
    daemon.finish().await
}

/// The most that was seen of either.
async fn watch(api: Api, over: Arc<AtomicBool>) -> anyhow::Result<(u64, u64)> {
    let mut most = (0, 0);
    while !over.load(Ordering::SeqCst) {
        let (waiting, making) = under_way(&api).await?;
        most = (most.0.max(waiting), most.1.max(making));
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(most)
}

/// Creates that wait, and those that are being made.
async fn under_way(api: &Api) -> anyhow::Result<(u64, u64)> {
    let text = api.request("GET", "/metrics").send().await?.error_for_status()?.text().await?;
    let of = |stage: &str| {
        let name = format!("sandbank_creates_under_way{{stage=\"{stage}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    };
    Ok((of("waiting"), of("making")))
}
