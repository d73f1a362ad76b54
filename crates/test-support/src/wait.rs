//! Waiting for a condition instead of sleeping.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

/// Polls until `condition` holds; fails with `what` when it does not within the limit.
pub async fn wait_for<F, Fut>(what: &str, limit: Duration, mut condition: F) -> anyhow::Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    eventually(what, limit, || {
        let holds = condition();
        async move { holds.await.then_some(()) }
    })
    .await
}

/// Polls until `probe` gives a value.
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, mut probe: F) -> anyhow::Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return Ok(value);
        }
        anyhow::ensure!(Instant::now() < deadline, "gave up after {limit:?} waiting for: {what}");
        tokio::time::sleep(POLL).await;
    }
}
