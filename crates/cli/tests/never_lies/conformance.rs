//! A list of cases against a daemon: each gets a sandbox of its own and is reported by name.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use sandbank_test_support::TestDaemon;
use serde_json::json;

use crate::place::Place;

/// A case that takes longer hangs: on a busy machine the longest takes three minutes.
const CASE_LIMIT: Duration = Duration::from_secs(600);

pub(crate) struct Case {
    /// The promise, as a sentence.
    pub(crate) name: &'static str,
    pub(crate) run: fn(Place) -> BoxFuture<'static, anyhow::Result<()>>,
}

/// `cases!["the promise" => module::function, …]`
macro_rules! cases {
    ($($name:literal => $function:path),* $(,)?) => {
        &[$($crate::conformance::Case { name: $name, run: |place| Box::pin($function(place)) }),*]
    };
}
pub(crate) use cases;

/// Runs all of them, also after a failure. `SANDBANK_CASE` picks those whose name contains it.
pub(crate) async fn check(daemon: &TestDaemon, cases: &[Case]) -> anyhow::Result<()> {
    let wanted = std::env::var("SANDBANK_CASE").unwrap_or_default();
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case.name.contains(&wanted)) {
        let began = Instant::now();
        let outcome = alone(daemon, case).await;
        println!("{:>6} ms  {}", began.elapsed().as_millis(), case.name);
        if let Err(error) = outcome {
            failures.push(format!("{}: {error:#}", case.name));
        }
    }
    let log = if failures.is_empty() { String::new() } else { daemon.log_tail() };
    anyhow::ensure!(failures.is_empty(), "{}\n{log}", failures.join("\n"));
    Ok(())
}

async fn alone(daemon: &TestDaemon, case: &Case) -> anyhow::Result<()> {
    let api = daemon.api()?;
    let body = json!({ "sessionKey": case.name, "network": { "mode": "none" } });
    let sandbox = api.create_with(body).await?;
    let daemon = daemon.pid().expect("the daemon was started");
    let place = Place { api: api.clone(), sandbox: sandbox.clone(), daemon };
    // A task of its own, so that a failed assertion is one case's.
    let mut task = tokio::spawn((case.run)(place));
    let outcome = match tokio::time::timeout(CASE_LIMIT, &mut task).await {
        Ok(finished) => finished?,
        Err(_) => {
            task.abort();
            Err(anyhow::anyhow!("still not finished after {CASE_LIMIT:?}"))
        }
    };
    api.stop(&sandbox).await?;
    outcome
}
