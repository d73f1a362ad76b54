//! The same tests over another engine: with `SANDBANK_TEST_ENGINE=docker`, every [`TestDaemon`]
//! makes its sandboxes in a Docker of the tests' own.
//!
//! [`TestDaemon`]: crate::TestDaemon

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use crate::{PrivateDocker, suite_root};

const SWITCH: &str = "SANDBANK_TEST_ENGINE";
const IMAGE: &str = "sandbank-suite";

fn is_wanted() -> bool {
    match std::env::var(SWITCH) {
        Ok(name) if name == "docker" => true,
        Ok(name) if !name.is_empty() && name != "native" => {
            panic!("{SWITCH}={name}: use native or docker")
        }
        _ => false,
    }
}

/// None when the tests are not about Docker.
pub(crate) fn shared() -> anyhow::Result<Option<Arc<PrivateDocker>>> {
    if !is_wanted() {
        return Ok(None);
    }
    let docker = PrivateDocker::shared(|docker| {
        let archive = docker.dir().join("suite.tar");
        suite_root(&archive)?;
        docker.said(&["import", &archive.to_string_lossy(), IMAGE])?;
        Ok(std::fs::remove_file(archive)?)
    })?;
    docker.with_context(|| format!("{SWITCH} asks for Docker")).map(Some)
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
    let mut left = docker.objects_of(instance.trim())?;
    // Workspaces with a name are meant to stay.
    left.retain(|line| !line.contains("-kept-"));
    Ok(left)
}
