//! Sandkasten's published Python client, unchanged, against a real daemon that is configured as a
//! Sandkasten daemon would be.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const KEY: &str = "sk-sandbox-quickstart";
const LIMIT: Duration = Duration::from_secs(180);

/// The client's Python, installed when it is not there yet.
async fn python() -> anyhow::Result<Option<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let install = Command::new(root.join("scripts/sandkasten-client.sh")).output().await?;
    let said = String::from_utf8(install.stdout)?;
    Ok(install.status.success().then(|| said.trim().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_python_client_works_unchanged() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(python) = python().await? else {
        println!("skipped: the published client cannot be installed here");
        return Ok(());
    };
    let daemon = TestDaemon::start_with(SANDBANK, &[("SANDKASTEN_API_KEY", KEY)]).await?;
    let api = daemon.api()?;
    let probe = json!({ "path": "probe", "text": "" });
    let (kept, _) = api.try_call("POST", "/v1/workspaces/probe-it/fs/write", Some(probe)).await?;
    api.call("DELETE", "/v1/workspaces/probe-it", None).await?;
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandkasten/driver.py");
    let child = Command::new(python)
        .arg(driver)
        .env("URL", daemon.url())
        .env("KEY", KEY)
        .env("KEEPS_WORKSPACES", if kept == 200 { "1" } else { "0" })
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await??;
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    anyhow::ensure!(output.status.success(), "{said}\n{errors}\n{}", daemon.log_tail());
    assert_eq!(said.trim(), "every method works");
    daemon.finish().await
}

/// A repository with a file that says where the server is, and whoever listens there.
fn trap() -> anyhow::Result<(tempfile::TempDir, TcpListener)> {
    let directory = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let yaml = format!("listen: {}\napi_key: known-to-others\n", listener.local_addr()?);
    std::fs::write(directory.path().join("sandkasten.yaml"), yaml)?;
    Ok((directory, listener))
}

/// In the directory, with a token, and without anything of this machine's own.
fn sandbank(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SANDBANK);
    let data = directory.join("data");
    command.args(words).current_dir(directory).env_clear().env("SANDBANK_TOKEN", "a-token");
    command.env("SANDBANK_CONFIG", "/dev/null").env("SANDBANK_DATA_DIR", data);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_working_directory_does_not_say_where_the_token_goes() -> anyhow::Result<()> {
    let (directory, listener) = trap()?;
    sandbank(directory.path(), &["ps"]).output().await?;
    let nobody = listener.accept().err().map(|error| error.kind());
    assert_eq!(nobody, Some(ErrorKind::WouldBlock), "a client followed the file");

    // Named, it is followed: so the look above would have seen a client.
    let mut named = sandbank(directory.path(), &["ps"]);
    named.env("SANDBANK_SANDKASTEN_CONFIG", directory.path().join("sandkasten.yaml"));
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let followed = async {
        loop {
            let (mut socket, _) = listener.accept().await?;
            let mut head = [0; 4096];
            let read = socket.read(&mut head).await?;
            let health = "{\"ok\":true}";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{health}",
                health.len()
            );
            socket.write_all(answer.as_bytes()).await?;
            if String::from_utf8_lossy(&head[..read]).contains("a-token") {
                return anyhow::Ok(());
            }
        }
    };
    let mut client = named.spawn()?;
    tokio::time::timeout(LIMIT, followed).await??;
    client.wait().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_working_directory_is_told_of_and_changes_nothing() -> anyhow::Result<()> {
    let (directory, listener) = trap()?;
    let port = listener.local_addr()?.port().to_string();
    let flag = ["--sandkasten-config", "sandkasten.yaml"];
    let output = async |words: &[&str]| -> anyhow::Result<String> {
        let output = sandbank(directory.path(), words).output().await?;
        let said = String::from_utf8([output.stdout, output.stderr].concat())?;
        anyhow::ensure!(output.status.success(), "{said}");
        Ok(said)
    };
    let told = "./sandkasten.yaml is not read";
    let said = output(&["config", "check"]).await?;
    assert!(said.contains(told) && said.contains("--sandkasten-config"), "{said}");
    let said = output(&[&["config", "check"], &flag[..]].concat()).await?;
    assert!(!said.contains(told) && said.contains("is read"), "{said}");
    assert!(!output(&["--json", "config", "show"]).await?.contains(&port));
    assert!(output(&[&["--json", "config", "show"], &flag[..]].concat()).await?.contains(&port));
    Ok(())
}
