//! Never lies: what a command is reported to have said and done is what it said and did.
//!
//! The cases know an API and a sandbox and nothing of the engine below, so that every engine runs
//! the same list. What needs the host's view of a machine is below `native`.

mod cases;
mod conformance;
mod heard;
mod native;
mod place;

use sandbank_test_support::{TestDaemon, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Larger amounts for a long run: `SANDBANK_TORTURE=full`.
fn torture() -> bool {
    std::env::var("SANDBANK_TORTURE").is_ok_and(|value| value == "full")
}

async fn on_native(cases: &[conformance::Case]) -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    conformance::check(&daemon, cases).await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_says_and_does_is_reported_as_it_was() -> anyhow::Result<()> {
    on_native(cases::ANSWERS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn any_amount_of_input_and_output_is_accounted_for() -> anyhow::Result<()> {
    on_native(cases::FLOODS).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crowds_of_commands_and_readers_are_served_like_one() -> anyhow::Result<()> {
    on_native(cases::CROWDS).await
}
