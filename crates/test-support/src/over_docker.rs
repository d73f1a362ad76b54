//! The same tests over another engine: with `SANDBANK_TEST_ENGINE=docker`, every [`TestDaemon`]
//! makes its sandboxes in a Docker of the tests' own.
//!
//! [`TestDaemon`]: crate::TestDaemon

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context;

use crate::{PrivateDocker, suite_root};

const SWITCH: &str = "SANDBANK_TEST_ENGINE";
pub(crate) const IMAGE: &str = "sandbank-suite";

/// Prints a counted reason and tells the caller to return.
pub fn skip_unless_native() -> bool {
    let elsewhere = is_wanted();
    if elsewhere {
        println!("skipped: this test is about the native engine");
    }
    elsewhere
}

fn is_wanted() -> bool {
    match std::env::var(SWITCH) {
        Ok(name) if name == "docker" => true,
        Ok(name) if !name.is_empty() && name != "native" => {
            panic!("{SWITCH}={name}: use native or docker")
        }
        _ => false,
    }
}

/// One for the tests that run at the same time; it goes with the last of them. None when the
/// tests are not about Docker.
pub(crate) fn shared() -> anyhow::Result<Option<Arc<PrivateDocker>>> {
    static SHARED: Mutex<Weak<PrivateDocker>> = Mutex::new(Weak::new());
    if !is_wanted() {
        return Ok(None);
    }
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(docker) = shared.upgrade() {
        return Ok(Some(docker));
    }
    let docker =
        PrivateDocker::start(false)?.with_context(|| format!("{SWITCH} asks for Docker"))?;
    let archive = docker.dir().join("suite.tar");
    suite_root(&archive)?;
    docker.said(&["import", &archive.to_string_lossy(), IMAGE])?;
    std::fs::remove_file(archive)?;
    let docker = Arc::new(docker);
    *shared = Arc::downgrade(&docker);
    Ok(Some(docker))
}

/// What a daemon has to be told.
pub(crate) fn settings(docker: &PrivateDocker) -> Vec<(String, String)> {
    let socket = docker.socket().to_string_lossy().into_owned();
    let settings = [
        ("SANDBANK_ENGINE", "docker"),
        ("SANDBOXD_DOCKER_SOCKET", &*socket),
        ("SANDBANK_DOCKER_IMAGE", IMAGE),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Objects in Docker that carry the label of the daemon of this directory.
pub(crate) fn residue(docker: &PrivateDocker, data_dir: &Path) -> anyhow::Result<Vec<String>> {
    let instance = std::fs::read_to_string(data_dir.join("instance"))?;
    let label = format!("label=sandbank.instance={}", instance.trim());
    let mut left = Vec::new();
    for list in [&["ps", "-aq"][..], &["volume", "ls", "-q"], &["network", "ls", "-q"]] {
        let said = docker.said(&[list, &["--filter", &label]].concat())?;
        left.extend(said.lines().map(|line| format!("{}: {line}", list[0])));
    }
    // Workspaces with a name are meant to stay.
    left.retain(|line| !line.contains("-kept-"));
    Ok(left)
}
