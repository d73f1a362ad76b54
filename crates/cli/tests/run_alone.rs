//! `sandbank run` with no server: its own parts, for as long as it takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use sandbank_test_support::{free_port, residue, skip_unless_root};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

fn alone(data: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SANDBANK);
    command
        .args(words)
        .env("SANDBANK_DATA_DIR", data)
        .env("SANDBANK_PORT", free_port().unwrap().to_string())
        .env_remove("SANDBANK_URL")
        .env_remove("SANDBANK_TOKEN")
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn clean(data: &Path) {
    let left = residue::of(data);
    assert!(left.is_empty(), "left on the host: {left:#?}");
}

#[test]
fn a_command_runs_without_a_server_and_leaves_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let output =
        alone(&data, &["run", "--network", "none", "python3", "-c", "print(6 * 7)"]).output()?;
    assert_eq!(succeeded(&output), "42\n");
    assert_eq!(text(&output.stderr), "");
    let output =
        alone(&data, &["run", "--network", "none", "--", "sh", "-c", "exit 3"]).output()?;
    assert_eq!(output.status.code(), Some(3));
    clean(&data);
    Ok(())
}

#[test]
fn two_runs_at_once_do_not_wait_for_each_other() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let elsewhere = tempfile::tempdir()?;
    std::fs::create_dir(elsewhere.path().join("etc"))?;
    let archive = elsewhere.path().join("little.tar");
    let mut tar = Command::new("tar");
    tar.arg("cf").arg(&archive).arg("-C").arg(elsewhere.path()).arg("etc");
    assert!(tar.status()?.success());
    succeeded(&alone(&data, &["image", "import", "little", archive.to_str().unwrap()]).output()?);
    let words = ["run", "--network", "none", "--", "sh", "-c", "echo ready; cat"];
    let mut first = alone(&data, &words);
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut ready = [0; 6];
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut ready)?;

    let second = alone(&data, &["run", "--network", "none", "--", "echo", "second"])
        .env("TMPDIR", dir.path())
        .output()?;
    assert_eq!(succeeded(&second), "second\n");
    assert!(text(&second.stderr).contains("temporary"), "{}", text(&second.stderr));
    // Nothing is in the image, but it is there.
    for (image, code, said) in
        [("little", 127, "\"nothing\": not found"), ("big", 64, "big is not here")]
    {
        let words = ["run", "--image", image, "--network", "none", "--", "nothing"];
        let output = alone(&data, &words).env("TMPDIR", dir.path()).output()?;
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    let kept = alone(&data, &["run", "--keep", "--", "true"]).output()?;
    assert_eq!(kept.status.code(), Some(75), "{}", text(&kept.stderr));

    drop(first.stdin.take());
    assert!(first.wait()?.success());
    let names: Vec<_> = std::fs::read_dir(dir.path())?.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, std::slice::from_ref(&data), "the temporary data directory stayed");
    clean(&data);
    Ok(())
}

#[test]
fn what_was_kept_is_there_for_the_next_server() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let keep = ["run", "--keep", "--network", "none", "--", "touch", "kept"];
    let output = alone(&data, &keep).output()?;
    succeeded(&output);
    let said = text(&output.stderr);
    let id = said.split("the sandbox ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();

    let port = free_port()?.to_string();
    let mut server = alone(&data, &["serve"])
        .env("SANDBANK_PORT", &port)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    // The lock says that a server is starting, so the command waits for it.
    let listed = || alone(&data, &["exec", id, "--", "ls"]).env("SANDBANK_PORT", &port).output();
    let mut output = listed()?;
    while output.status.code() == Some(69) && server.try_wait()?.is_none() {
        output = listed()?;
    }
    let removed = alone(&data, &["rm", "--all"]).env("SANDBANK_PORT", &port).output()?;
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&server),
        rustix::process::Signal::TERM,
    )?;
    assert!(server.wait()?.success());
    assert_eq!(succeeded(&output), "kept\n");
    assert_eq!(succeeded(&removed).trim(), id);
    clean(&data);
    Ok(())
}

#[test]
fn what_was_kept_is_listed_and_removed_without_a_server() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    succeeded(&alone(&data, &["run", "--keep", "--network", "none", "--", "true"]).output()?);
    let id = succeeded(&alone(&data, &["ps", "-q"]).output()?);
    let id = id.trim();
    let inspected = succeeded(&alone(&data, &["inspect", id, "--json"]).output()?);
    assert!(inspected.contains("\"running\""), "{inspected}");
    // Two who look at once wait for each other.
    let mut looks = Vec::new();
    for _ in 0..2 {
        looks.push(alone(&data, &["ps", "-q"]).stdout(Stdio::piped()).spawn()?);
    }
    for look in looks {
        assert_eq!(succeeded(&look.wait_with_output()?).trim(), id);
    }
    assert_eq!(succeeded(&alone(&data, &["rm", id, id]).output()?).trim(), id);
    let none_left = alone(&data, &["ps", "-q"]).output()?;
    assert_eq!(succeeded(&none_left), "");
    // Whoever looks into the wrong directory learns it.
    let said = String::from_utf8_lossy(&none_left.stderr);
    assert!(said.contains("no server has the data directory"), "{said}");
    clean(&data);
    Ok(())
}

#[test]
fn what_a_killed_run_left_is_removed_without_a_server() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let words = ["run", "--network", "none", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let mut killed = alone(&data, &words).stdout(Stdio::piped()).spawn()?;
    let mut ready = [0; 6];
    std::io::Read::read_exact(killed.stdout.as_mut().unwrap(), &mut ready)?;
    killed.kill()?;
    killed.wait()?;
    let removed = succeeded(&alone(&data, &["rm", "--all"]).output()?);
    assert_eq!(removed.lines().count(), 1, "{removed}");
    clean(&data);
    Ok(())
}

#[test]
fn a_check_says_whether_a_server_would_start() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let output = alone(&data, &["serve", "--check"]).output()?;
    assert!(succeeded(&output).contains("ready"), "{}", text(&output.stderr));
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    let output = alone(&data, &["serve", "--check"]).env("SANDBANK_PORT", &port).output()?;
    assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
    clean(&data);
    Ok(())
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_kept() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    succeeded(&alone(&data, &["run", "--network", "none", "--", "true"]).output()?);
    let database = data.join("sandbank.db");
    let mut bytes = std::fs::read(&database)?;
    // SQLite keeps `user_version` here, big-endian.
    bytes[60..64].copy_from_slice(&999u32.to_be_bytes());
    std::fs::write(&database, &bytes)?;
    let output = alone(&data, &["serve"]).output()?;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{said}");
    assert!(said.contains("999") && said.contains("hint: "), "{said}");
    assert_eq!(std::fs::read(&database)?, bytes);
    clean(&data);
    Ok(())
}

#[test]
fn doctor_tries_every_control_and_leaves_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let output = alone(&dir.path().join("data"), &["doctor", "--json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let controls = report["controls"].as_array().unwrap();
    assert!(controls.len() >= 10, "{report}");
    let lacking =
        controls.iter().any(|row| row["standing"] != "in_force" && row["required"] == true);
    let code = if lacking { 78 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    assert_eq!(report["ready"], !lacking);
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0, "doctor left something behind");
    clean(dir.path());
    Ok(())
}

#[test]
fn without_the_rights_to_make_machines_the_reason_and_the_next_step_are_said() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534))?;
    let binary = dir.path().join("sandbank");
    std::fs::copy(SANDBANK, &binary)?;
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&binary)
        .args(["run", "--", "true"])
        .env("SANDBANK_DATA_DIR", dir.path().join("data"))
        .env("SANDBANK_PORT", free_port()?.to_string())
        .env_remove("SANDBANK_URL")
        .env_remove("SANDBANK_TOKEN")
        .stdin(Stdio::null())
        .output()?;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("hint: ") && said.contains("doctor"), "{said}");
    Ok(())
}
