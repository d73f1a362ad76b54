//! Never lies: what a command is reported to have said and done is what it said and did.
//!
//! The cases know an API and a sandbox and nothing of the engine below, so that every engine runs
//! the same list. What comes and goes, dies or is told to leave meanwhile is beside them.

mod cases;
mod churn;
mod conformance;
mod deaths;
mod heard;
mod host;
mod place;
mod shutdown;

use sandbank_test_support::{TestDaemon, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Larger amounts for a long run: `SANDBANK_TORTURE=full`.
fn torture() -> bool {
    std::env::var("SANDBANK_TORTURE").is_ok_and(|value| value == "full")
}

async fn checked(cases: &[conformance::Case]) -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    conformance::check(&daemon, cases).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_says_and_does_is_reported_as_it_was() -> anyhow::Result<()> {
    checked(cases::ANSWERS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn any_amount_of_input_and_output_is_accounted_for() -> anyhow::Result<()> {
    checked(cases::FLOODS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crowds_of_commands_and_readers_are_served_like_one() -> anyhow::Result<()> {
    checked(cases::CROWDS).await
}
