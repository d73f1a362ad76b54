//! Which files of a repository git tracks.
//!
//! The repository is somebody's, and git runs here: without its hooks, monitors and network, and only
//! to read its index.

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::super::limits::{TRACKED_BYTES, TRACKED_PATIENCE};
use super::SeedError;

pub(super) type Tracked = HashSet<Vec<u8>>;

/// None where the directory is no repository of its own.
pub(super) async fn files(root: &Path) -> Result<Option<Tracked>, SeedError> {
    if std::fs::symlink_metadata(root.join(".git")).is_err() {
        return Ok(None);
    }
    let failed = |reason: &dyn ToString| SeedError::Tracked(reason.to_string());
    let mut git = command(root);
    let mut child = git.spawn().map_err(|error| failed(&error))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (Some(output), Some(errors)) = (output, errors) else {
        return Err(failed(&"it has no output"));
    };
    let (mut said, mut complaint) = (Vec::new(), Vec::new());
    let reading = async {
        // One more than is taken, so that too much is noticed.
        let mut output = output.take(TRACKED_BYTES + 1);
        let mut errors = errors.take(4 << 10);
        let both = (output.read_to_end(&mut said), errors.read_to_end(&mut complaint));
        let (one, other) = tokio::join!(both.0, both.1);
        one.and(other)?;
        child.wait().await
    };
    let status = match tokio::time::timeout(TRACKED_PATIENCE, reading).await {
        Ok(status) => status.map_err(|error| failed(&error))?,
        Err(_) => return Err(failed(&"it takes too long")),
    };
    if said.len() as u64 > TRACKED_BYTES {
        return Err(failed(&"it has too many"));
    }
    if !status.success() {
        return Err(failed(&String::from_utf8_lossy(&complaint).trim()));
    }
    let names = said.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(Some(names.map(<[u8]>::to_vec).collect()))
}

fn command(root: &Path) -> Command {
    let mut git = Command::new("git");
    let mut git_dir = std::ffi::OsString::from("--git-dir=");
    git_dir.push(root.join(".git"));
    let mut work_tree = std::ffi::OsString::from("--work-tree=");
    work_tree.push(root);
    git.arg("-C").arg(root).arg(git_dir).arg(work_tree);
    for setting in [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.untrackedCache=false",
        "core.quotePath=false",
        "core.sshCommand=false",
        "protocol.allow=never",
        "submodule.recurse=false",
        "safe.directory=*",
    ] {
        git.args(["-c", setting]);
    }
    git.args(["ls-files", "-z", "--cached"]);
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    git.env_clear().env("PATH", path).env("HOME", "/nonexistent").env("LC_ALL", "C");
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
    ] {
        git.env(name, value);
    }
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    git
}
