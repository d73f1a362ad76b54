//! The program and a server whose token it does not have: what is open works to its end, the rest
//! says what to set.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};

use sandbank_test_support::{TestDaemon, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Knows the daemon's address and nothing else of it.
fn stranger(daemon: &TestDaemon, home: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(SANDBANK);
    command
        .args(["--url", &daemon.url()])
        .args(words)
        .env("SANDBANK_DATA_DIR", home.path().join("data"))
        .env_remove("SANDBANK_URL")
        .env_remove("SANDBANK_TOKEN")
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(77), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_token_ends_with_the_commands_code_and_leaves_nothing() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let (daemon, home) = (TestDaemon::start(SANDBANK).await?, tempfile::tempdir()?);
    let words = ["run", "--network", "none", "--", "sh", "-c", "echo hi; exit 5"];
    let output = stranger(&daemon, &home, &words).output()?;
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("hi\n".into(), String::new()));
    assert!(daemon.api()?.sandboxes().await?.is_empty(), "a run left its sandbox");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_could_not_be_passed_on_is_refused_before_anything_is_made() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let (daemon, home) = (TestDaemon::start(SANDBANK).await?, tempfile::tempdir()?);
    let words = ["run", "--network", "none", "--", "cat"];
    let output = stranger(&daemon, &home, &words).stdin(Stdio::piped()).output()?;
    refused(&output, &["standard input", "SANDBANK_TOKEN", "SANDBANK_DATA_DIR", "</dev/null"]);
    let log = std::fs::read_to_string(daemon.log_path())?;
    assert!(!log.contains("sandbox ready"), "{log}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_and_a_wrong_one_have_hints_of_their_own() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let (daemon, home) = (TestDaemon::start(SANDBANK).await?, tempfile::tempdir()?);
    let ps = || stranger(&daemon, &home, &["ps"]);
    refused(&ps().output()?, &["SANDBANK_TOKEN", "SANDBANK_DATA_DIR"]);
    refused(&ps().env("SANDBANK_TOKEN", "another").output()?, &["not this server's"]);
    // What the hints advise helps.
    let helped = [
        ps().env("SANDBANK_TOKEN", daemon.token()?).output()?,
        ps().env("SANDBANK_DATA_DIR", daemon.data_dir()).output()?,
    ];
    for output in helped {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    daemon.finish().await
}
