//! Coming and going leaves nothing: not in the daemon, not on the host.

use futures_util::{StreamExt, TryStreamExt, stream};
use sandbank_test_support::{TestDaemon, is_over_docker, skip_unless_root, wait_for};

use crate::host::{Usage, place};
use crate::place::{LIMIT, shell};
use crate::{SANDBANK, torture};

/// Descriptors and threads of pools and idle connections that come and go.
const SLACK: usize = 12;

async fn live_and_die(daemon: &TestDaemon, number: usize) -> anyhow::Result<()> {
    let place = place(daemon, &format!("churn-{number}")).await?;
    let heard = place.script(&format!("echo {number}; exit 3")).await?;
    anyhow::ensure!(
        (heard.text(), heard.exit_code) == (format!("{number}\n"), Some(3)),
        "{number}: {heard:?}"
    );
    place.api.stop(&place.sandbox).await
}

async fn churn(daemon: &TestDaemon, count: usize) -> anyhow::Result<()> {
    let all = (0..count).map(|number| live_and_die(daemon, number));
    stream::iter(all).buffer_unordered(8).try_collect().await
}

async fn back_at(daemon: &TestDaemon, before: &Usage) -> anyhow::Result<()> {
    let back = wait_for("everything to be given back", LIMIT, || async {
        Usage::of(daemon).is_ok_and(|now| now.is_back_at(before, SLACK))
    });
    back.await
        .map_err(|error| anyhow::anyhow!("{error}: {before:?} became {:?}", Usage::of(daemon)))
}

/// Docker takes a good part of a second for each.
fn lives() -> usize {
    match (is_over_docker(), torture()) {
        (true, true) => 1_000,
        (true, false) => 100,
        (false, true) => 4_000,
        (false, false) => 500,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_lives_and_deaths_leave_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    churn(&daemon, lives() / 12).await?;
    let before = Usage::of(&daemon)?;
    churn(&daemon, lives()).await?;
    back_at(&daemon, &before).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_readers_that_come_and_go_leave_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let count = if torture() { 20_000 } else { 5_000 };
    let daemon = TestDaemon::start(SANDBANK).await?;
    let place = place(&daemon, "popular").await?;
    let command = place.start(shell("echo here; sleep 600")).await?;
    let visit = || async {
        let mut stream = place.stream(&command, "").await?;
        anyhow::ensure!(stream.chunk().await?.is_some_and(|chunk| !chunk.is_empty()));
        Ok(())
    };
    let visits = |count: usize| {
        stream::iter((0..count).map(|_| visit())).buffer_unordered(16).try_collect::<()>()
    };
    visits(100).await?;
    let before = Usage::of(&daemon)?;
    let memory = (place.daemon_kib("VmRSS")?, place.sandbox_kib("memoryBytes").await?);
    visits(count).await?;
    back_at(&daemon, &before).await?;
    let after = (place.daemon_kib("VmRSS")?, place.sandbox_kib("memoryBytes").await?);
    let grown = (after.0.saturating_sub(memory.0), after.1.saturating_sub(memory.1));
    assert!(grown.0 < 16 << 10 && grown.1 < 4 << 10, "{memory:?} KiB became {after:?}");
    daemon.finish().await
}
