//! The tools' own seeds: what the configuration names is in the workspace before the first call.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

use crate::outside::Outside;
use crate::{SANDBANK, repository};

/// A daemon with tools that is yet to be launched. Its configuration is in a file of its own.
pub(crate) fn prepared() -> anyhow::Result<TestDaemon> {
    let mut daemon = TestDaemon::prepare(SANDBANK, &[("REMCOCHAT_ENABLE_BASH_TOOL", "1")])?;
    let path = config_path(&daemon);
    daemon.set("REMCOCHAT_CONFIG_PATH", Some(&path.to_string_lossy()));
    Ok(daemon)
}

fn config_path(daemon: &TestDaemon) -> std::path::PathBuf {
    daemon.data_dir().join("chat.toml")
}

pub(crate) fn configure(daemon: &TestDaemon, rest: &str) -> anyhow::Result<()> {
    let text = format!("[app.bash_tools]\nenabled = true\n{rest}");
    Ok(std::fs::write(config_path(daemon), text)?)
}

pub(crate) async fn bash(api: &Api, script: &str) -> anyhow::Result<Value> {
    api.call("POST", "/api/tools/bash", Some(json!({ "command": script }))).await
}

async fn said(api: &Api, script: &str) -> anyhow::Result<String> {
    let result = bash(api, script).await?;
    anyhow::ensure!(result["exitCode"] == 0, "{script}: {result}");
    Ok(result["stdout"].as_str().unwrap_or_default().trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_work_in_a_clone_or_not_at_all() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let root = tempfile::tempdir()?;
    let two = repository(&root.path().join("project"))?;
    let mut daemon = prepared()?;
    let outside = Outside::start(&daemon, root.path())?;
    let url = format!("http://{}/project/.git", outside.address());
    let seed = |revision: &str| {
        format!("[app.bash_tools.seed]\ngit_url = \"{url}\"\ngit_revision = \"{revision}\"\n")
    };
    configure(&daemon, &seed(&two))?;
    daemon.launch().await?;
    let api = daemon.api()?;
    let look =
        "git rev-parse HEAD; cat src/count; ls .remcochat/seeded_git; git remote get-url origin";
    assert_eq!(said(&api, look).await?, format!("{two}\n2\n.remcochat/seeded_git\n{url}"));
    // What was changed since stays, also for the next daemon.
    said(&api, "echo mine > src/count").await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let api = daemon.api()?;
    assert_eq!(said(&api, "cat src/count").await?, "mine");
    // Where nobody can tell that it was filled, there is a new one: what lies in wait in the old one
    // would run with the seed's secrets.
    said(&api, "rm .remcochat/seeded; echo 'env > seen' > .bash_profile").await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    let api = daemon.api()?;
    assert_eq!(said(&api, "ls -A; cat src/count").await?, ".git\n.remcochat\nsrc\n2");
    api.call("DELETE", "/api/tools/session", None).await?;

    daemon.terminate().await?;
    configure(&daemon, &seed("no-such-branch"))?;
    daemon.launch().await?;
    let api = daemon.api()?;
    let call = json!({ "command": "echo here" });
    let (status, answer) = api.try_call("POST", "/api/tools/bash", Some(call)).await?;
    assert_eq!(status, 503, "{answer}");
    let text = answer.to_string();
    assert!(text.contains("Failed to seed sandbox from git (exit 128). stderr: "), "{text}");
    assert!(text.contains("no-such-branch"), "{text}");
    daemon.finish().await
}

fn write(root: &Path, path: impl AsRef<Path>, content: &str) -> anyhow::Result<()> {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap_or(root))?;
    Ok(std::fs::write(path, content)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_work_in_a_copy_without_its_secrets() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let root = tempfile::tempdir()?;
    let project = root.path();
    for (path, content) in [
        ("src/main.rs", "fn main() {}\n"),
        (".env.example", "KEY=\n"),
        (".env", "KEY=hunter2\n"),
        ("deploy/server.pem", "hunter2\n"),
        ("secrets/token", "hunter2\n"),
        ("node_modules/x/index.js", "hunter2\n"),
        ("notes.txt", "hunter2 is not included\n"),
    ] {
        write(project, path, content)?;
    }
    let large = "0123456789abcdef".repeat(1 << 18);
    write(project, "assets/large.rs", &large)?;
    std::fs::write(project.join(OsStr::from_bytes(b"odd \xff name.rs")), "odd\n")?;
    std::os::unix::fs::symlink("/etc/passwd", project.join("link.rs"))?;
    let mut daemon = prepared()?;
    let text = format!(
        "project_root = {:?}\n[app.bash_tools.docker]\nnetwork_mode = \"none\"\n[app.bash_tools.seed]\n\
         mode = \"upload\"\nupload_include = \"**/*.{{rs,example,pem}}\"\n",
        project.display().to_string()
    );
    configure(&daemon, &text)?;
    daemon.launch().await?;
    let api = daemon.api()?;
    let list = "find . -path ./.remcochat -prune -o -type f -printf '%s %P\\n' | LC_ALL=C sort -k 2 | od -c | grep -c 377; \
                find . -path ./.remcochat -prune -o ! -type d -printf '%y %s %m %P\\n' | LC_ALL=C sort -k 4 | grep -av odd; \
                sha256sum < assets/large.rs; echo more >> src/main.rs";
    let expected = format!(
        "1\nf 5 644 .env.example\nf {} 644 assets/large.rs\nf 13 644 src/main.rs\n{}  -",
        large.len(),
        crate::sha256(large.as_bytes())
    );
    assert_eq!(said(&api, list).await?, expected);
    let found = bash(&api, "grep -r hunter2 . ; echo $?").await?;
    assert_eq!(found["stdout"].as_str().map(str::trim), Some("1"), "{found}");
    daemon.finish().await
}
