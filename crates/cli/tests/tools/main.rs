//! The tools of a model against a real daemon: who has them, and what becomes of their commands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures_util::StreamExt;
use sandbank_test_support::{TestDaemon, is_over_docker, skip_unless_root, wait_for};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const SOON: Duration = Duration::from_secs(20);
const ON: (&str, &str) = ("REMCOCHAT_ENABLE_BASH_TOOL", "1");
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn config(dir: &Path, section: &str) -> PathBuf {
    let path = dir.join("chat.toml");
    std::fs::write(&path, format!("[app]\nname = \"chat\"\n[app.bash_tools]\n{section}\n"))
        .unwrap();
    path
}

async fn daemon(
    section: &str,
    env: &[(&str, &str)],
) -> anyhow::Result<(TestDaemon, tempfile::TempDir)> {
    let dir = tempfile::tempdir()?;
    let provider = if is_over_docker() { "docker" } else { "native" };
    let file = config(dir.path(), &format!("provider = \"{provider}\"\n{section}"));
    let env = [&[("REMCOCHAT_CONFIG_PATH", file.to_str().unwrap())], env].concat();
    Ok((TestDaemon::start_with(SANDBANK, &env).await?, dir))
}

fn post(daemon: &TestDaemon, tool: &str, input: &Value) -> reqwest::RequestBuilder {
    let url = format!("{}/api/tools/{tool}", daemon.url());
    reqwest::Client::new().post(url).body(input.to_string())
}

async fn bash(daemon: &TestDaemon, command: &str) -> anyhow::Result<Value> {
    let answer = post(daemon, "bash", &json!({ "command": command })).send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    anyhow::ensure!(status == 200, "{status}: {text}");
    Ok(serde_json::from_str(&text)?)
}

/// Processes of this machine, those in sandboxes among them, whose command line has the word.
fn running(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |path: PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| {
            let words = line.split(|byte| *byte == 0);
            words.clone().next() == Some(b"sleep")
                && words.skip(1).any(|part| part == word.as_bytes())
        })
    };
    processes.filter(|process| has(process.path())).count()
}

#[test]
fn a_wrong_section_keeps_the_daemon_from_starting_and_is_explained_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let run = |section: &str, words: &[&str], token: &str| {
        let file = config(dir.path(), section);
        let mut command = Command::new(SANDBANK);
        command.args(words).env("REMCOCHAT_CONFIG_PATH", file).env("REMCOCHAT_ADMIN_TOKEN", token);
        let output = command.env("SANDBANK_DATA_DIR", dir.path().join("data")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let wrong =
        "enabled = true\ntimeout_ms = 5\nacces = \"lan\"\n[app.bash_tools.seed]\nmode = \"git\"";
    for words in [&["config", "check"][..], &["serve", "--check"], &["serve"]] {
        let (code, said) = run(wrong, words, "");
        assert_eq!(code, Some(64), "{words:?}: {said}");
        for line in [
            "app.bash_tools.timeout_ms is 5, but must be a whole number from 1000 to 300000",
            "app.bash_tools.acces is not a key of [app.bash_tools]; did you mean access?",
            "app.bash_tools.seed.git_url is not set",
        ] {
            assert_eq!(said.lines().filter(|said| said.contains(line)).count(), 1, "{said}");
        }
        let lan = "enabled = true\naccess = \"lan\"";
        let (code, said) = run(lan, words, &TOKEN[1..]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains("31 characters long") && !said.contains(&TOKEN[1..]), "{said}");
    }
    let (code, said) = run("enabled = true\naccess = \"lan\"", &["config", "check"], TOKEN);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_section_may_stand_in_the_daemons_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let check = |timeout: u32| {
        let file = dir.path().join("own.toml");
        let section = format!("[app.bash_tools]\nenabled = true\ntimeout_ms = {timeout}\n");
        let others = "[app.web_tools]\nwhatever = 1\n";
        std::fs::write(&file, format!("[server]\nport = 0\n{section}{others}")).unwrap();
        let mut command = Command::new(SANDBANK);
        command.args(["config", "check", "--config", file.to_str().unwrap()]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = check(1_000);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = check(999);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("own.toml") && said.contains("timeout_ms is 999"), "{said}");
}

/// An address of this machine that is not loopback. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_from_another_address_has_no_tools_whatever_it_says() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(address) = own_address() else {
        println!("skipped: this machine has no address but loopback");
        return Ok(());
    };
    let env = [ON, ("SANDBANK_HOST", "0.0.0.0"), ("REMCOCHAT_ADMIN_TOKEN", TOKEN)];
    let (daemon, _dir) = daemon("enabled = true", &env).await?;
    let port = daemon.url().rsplit(':').next().unwrap().to_owned();
    let call = |host: &str, headers: &[(&str, &str)]| {
        let request = reqwest::Client::new().post(format!("http://{host}:{port}/api/tools/bash"));
        let request = request.body(json!({ "command": "echo yes" }).to_string());
        headers.iter().fold(request.bearer_auth(TOKEN), |request, (name, value)| {
            request.header(*name, *value)
        })
    };
    let near = call("127.0.0.1", &[]).send().await?;
    assert_eq!(near.status(), 200);
    for spoofed in [
        &[][..],
        &[("host", "localhost")],
        &[("x-forwarded-for", "127.0.0.1")],
        &[("x-real-ip", "::1")],
        &[("host", "127.0.0.1"), ("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1")],
    ] {
        let far = call(&address.to_string(), spoofed).send().await?;
        assert_eq!(far.status(), 403, "{spoofed:?}");
        assert_eq!(far.headers()["x-remcochat-bash-tools-enabled"], "0");
        assert_eq!(far.json::<Value>().await?["code"], "tools_not_for_you");
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_and_an_abort_leave_no_process_of_the_command() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let (daemon, _dir) = daemon("enabled = true\ntimeout_ms = 3000", &[ON]).await?;
    // A number of seconds that nobody else sleeps.
    let word = format!("8{}.25", std::process::id());
    let command = format!(
        "(setsid bash -c '(sleep {word} &) ; sleep {word}' &) ; nohup sleep {word} & sleep {word}"
    );
    let timed_out = tokio::spawn({
        let call = post(&daemon, "bash", &json!({ "command": command }));
        async move { call.send().await?.json::<Value>().await }
    });
    wait_for("four processes", SOON, || async { running(&word) == 4 }).await?;
    let answer = timed_out.await??;
    assert_eq!(answer["exitCode"], 124, "{answer}");
    assert_eq!(answer["stderr"], "Command timed out after 3000ms.");
    wait_for("the timeout to end them all", SOON, || async { running(&word) == 0 }).await?;

    let call = post(&daemon, "bash?stream=sse", &json!({ "command": command }));
    let mut body = call.send().await?.bytes_stream();
    body.next().await.unwrap()?;
    wait_for("four processes again", SOON, || async { running(&word) == 4 }).await?;
    drop(body);
    wait_for("the abort to end them all", SOON, || async { running(&word) == 0 }).await?;
    assert_eq!(bash(&daemon, "echo $((6 * 7))").await?["stdout"], "42");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_its_sandbox_across_kill_9_of_the_daemon() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let (mut daemon, _dir) = daemon("enabled = true\nmax_concurrent_sandboxes = 1", &[ON]).await?;
    bash(&daemon, "echo before > kept; nohup sleep 1000 >/dev/null 2>&1 &").await?;
    let before = daemon.api()?.sandboxes().await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let after =
        bash(&daemon, "cat kept; pgrep -c sleep; type python >/dev/null && echo python").await?;
    assert_eq!(after["stdout"], "before\n1\npython", "{after}");
    let now = daemon.api()?.sandboxes().await?;
    assert_eq!(before[0]["sandboxId"], now[0]["sandboxId"]);
    // The place is taken, also after a restart: another session ends it.
    let other = post(&daemon, "bash", &json!({ "command": "ls" }));
    let other = other.header("x-sandbank-session", "other").send().await?;
    assert_eq!(other.json::<Value>().await?["stdout"], "");
    assert_eq!(daemon.api()?.sandboxes().await?.len(), 1);
    daemon.finish().await
}
