//! What can be wrong at start gives one clear message, a next step, and a documented code.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use sandbank_test_support::{free_port, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Starts `sandbank serve`, which must give up by itself.
fn serve(data: &Path, settings: &[(&str, &str)]) -> anyhow::Result<Output> {
    let port = free_port()?.to_string();
    let output = Command::new("timeout")
        .args(["--kill-after=5", "30", SANDBANK, "serve"])
        .env("SANDBANK_DATA_DIR", data)
        .env("SANDBOXD_PORT", port)
        .envs(settings.iter().copied())
        .output()?;
    Ok(output)
}

#[track_caller]
fn assert_refusal(output: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words.iter().chain(&["hint:"]) {
        assert!(text.to_lowercase().contains(&word.to_lowercase()), "no {word:?} in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn a_taken_port_is_named() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let data = tempfile::tempdir()?;
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    let output = serve(data.path(), &[("SANDBOXD_PORT", &port)])?;
    assert_refusal(&output, 75, &[&port, "in use"]);
    Ok(())
}

#[test]
fn a_bad_configuration_value_names_its_source_and_range() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let output = serve(data.path(), &[("SANDBOXD_PORT", "99999999")])?;
    assert_refusal(&output, 64, &["SANDBOXD_PORT", "99999999", "65535"]);
    Ok(())
}

#[test]
fn a_file_in_the_place_of_the_data_directory_is_named() -> anyhow::Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().display().to_string();
    let output = serve(file.path(), &[])?;
    let said = format!("{path} is a file, not a directory");
    assert_refusal(&output, 73, &[&said, "choose another --data-dir"]);
    Ok(())
}

#[test]
fn a_corrupt_database_is_refused_and_kept() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let data = tempfile::tempdir()?;
    let database = data.path().join("sandbank.db");
    std::fs::write(&database, b"this is not a database, whatever its name says".repeat(200))?;
    let output = serve(data.path(), &[])?;
    assert_refusal(&output, 65, &["sandbank.db"]);
    assert!(std::fs::read(&database)?.starts_with(b"this is not"), "the file is untouched");
    Ok(())
}

#[test]
fn a_full_or_read_only_data_directory_is_said_plainly() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    for (options, word) in [("size=16k,nr_inodes=4", "space"), ("ro", "read-only")] {
        let data = tempfile::tempdir()?;
        let mount = |args: &[&str]| Command::new("mount").args(args).arg(data.path()).status();
        assert!(mount(&["-t", "tmpfs", "-o", options, "sandbank-test"])?.success());
        let output = serve(data.path(), &[]);
        assert!(Command::new("umount").arg(data.path()).status()?.success());
        assert_refusal(&output?, 73, &[word]);
    }
    Ok(())
}

#[test]
fn a_second_daemon_on_the_same_data_directory_is_refused() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let daemon = runtime.block_on(sandbank_test_support::TestDaemon::start(SANDBANK))?;
    let output = serve(daemon.data_dir(), &[])?;
    assert_refusal(&output, 75, &["data directory"]);
    let check = daemon.cli().args(["serve", "--check"]).output()?;
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    assert!(said.contains(&daemon.url()), "{said}");
    runtime.block_on(daemon.finish())
}
