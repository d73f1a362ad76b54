//! Sandkasten's published Python client, unchanged, against a real daemon that is configured as a
//! Sandkasten daemon would be.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root};
use serde_json::json;
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
