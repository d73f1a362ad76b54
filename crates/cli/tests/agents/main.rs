//! Agents' own published clients, unchanged, against the real program: MCP over HTTP and pipes, and
//! `/api/chat` with a scripted model on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pipes;
mod protocol;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, ensure};
use sandbank_test_support::{TestDaemon, skip_unless_root};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const LIMIT: Duration = Duration::from_secs(300);

/// Where the clients are. None, with a counted reason, where they cannot be had.
static CLIENTS: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let script = root.join("scripts/agent-clients.sh");
    let output = std::process::Command::new(script).output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("skipped: the published clients could not be installed: {}", said.trim());
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
});

fn node(clients: &Path, script: &str) -> Command {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = clients.join(format!("node_modules/node-linux-{arch}/bin/node"));
    let mut command = Command::new(node);
    command.arg(script).current_dir(clients).stdin(Stdio::null()).kill_on_drop(true);
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command
}

/// What a script printed; an error where it failed.
async fn said(mut command: Command) -> anyhow::Result<String> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{}: {said}\n{errors}", output.status);
    Ok(said)
}

/// The scripted model, and where it listens.
async fn model(clients: &Path) -> anyhow::Result<(Child, String)> {
    let mut child = node(clients, "model.mjs").stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("it is piped")?).lines();
    let url =
        tokio::time::timeout(LIMIT, lines.next_line()).await??.context("it says where it is")?;
    Ok((child, url))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_mcp_client_and_the_inspector_work_unchanged() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(clients) = &*CLIENTS else { return Ok(()) };
    let daemon = TestDaemon::start(SANDBANK).await?;
    let mut driver = node(clients, "mcp.mjs");
    driver.env("SANDBANK", daemon.url()).env("TOKEN", daemon.token()?).env("BIN", SANDBANK);
    let said = said(driver).await.with_context(|| daemon.log_tail())?;
    assert_eq!(said, "the client and the inspector work over HTTP and pipes");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scripted_model_is_understood_by_its_providers_own_clients() -> anyhow::Result<()> {
    let Some(clients) = &*CLIENTS else { return Ok(()) };
    let said = said(node(clients, "model_check.mjs")).await?;
    assert_eq!(said, "the model speaks as its clients understand");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_ai_packages_read_chats_with_a_model_of_openais_kind() -> anyhow::Result<()> {
    chats("openai", "/v1").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_ai_packages_read_chats_with_a_model_of_anthropics_kind() -> anyhow::Result<()>
{
    chats("anthropic", "").await
}

async fn chats(provider: &str, path: &str) -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let Some(clients) = &*CLIENTS else { return Ok(()) };
    let (_model, url) = model(clients).await?;
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("config.toml");
    let text = format!(
        "[app.bash_tools]\nenabled = true\nmax_concurrent_sandboxes = 4\n\
         [[app.bash_tools.approvals.rules]]\naction = \"ask\"\ncommand = \"touch\"\n\
         [app.chat]\nprovider = \"{provider}\"\nmodel = \"scripted\"\n\
         base_url = \"{url}{path}\"\napi_key_env = \"SCRIPTED_KEY\"\n"
    );
    std::fs::write(&config, text)?;
    let settings = [
        ("SANDBANK_CONFIG", config.to_str().context("a plain path")?),
        ("REMCOCHAT_ENABLE_BASH_TOOL", "1"),
        ("SCRIPTED_KEY", "scripted-key"),
        ("SANDBOXD_MAX_CONCURRENT", "8"),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let mut driver = node(clients, "chat.mjs");
    driver.env("SANDBANK", daemon.url()).env("CHAT", provider).env("TOKEN", daemon.token()?);
    let said = said(driver).await.with_context(|| daemon.log_tail())?;
    assert_eq!(said, "every version of the package reads the chat");
    let log = std::fs::read_to_string(daemon.log_path())?;
    assert!(!log.contains("scripted-key"), "the key is in the log");
    daemon.finish().await
}
