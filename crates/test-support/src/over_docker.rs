//! The same tests over another engine: with `SANDBANK_TEST_ENGINE=docker`, every [`TestDaemon`]
//! makes its sandboxes in a Docker of the tests' own.
//!
//! [`TestDaemon`]: crate::TestDaemon

use std::sync::Arc;

use anyhow::Context;

use crate::{PrivateDocker, suite_root};

const SWITCH: &str = "SANDBANK_TEST_ENGINE";
/// What sandboxes are made of then.
pub const SUITE_IMAGE: &str = "sandbank-suite";

/// Whether every daemon of a test makes its sandboxes in Docker.
pub fn is_over_docker() -> bool {
    match std::env::var(SWITCH) {
        Ok(name) if name == "docker" => true,
        Ok(name) if !name.is_empty() && name != "native" => {
            panic!("{SWITCH}={name}: use native or docker")
        }
        _ => false,
    }
}

/// Prints a counted reason and tells the caller to return, where the tests are about Docker.
pub fn skip_over_docker(reason: &str) -> bool {
    if is_over_docker() {
        println!("skipped: over Docker, {reason}");
    }
    is_over_docker()
}

/// None when the tests are not about Docker.
pub(crate) fn shared() -> anyhow::Result<Option<Arc<PrivateDocker>>> {
    if !is_over_docker() {
        return Ok(None);
    }
    let docker = PrivateDocker::shared(import_suite)?;
    docker.with_context(|| format!("{SWITCH} asks for Docker")).map(Some)
}

/// Makes [`SUITE_IMAGE`].
pub fn import_suite(docker: &PrivateDocker) -> anyhow::Result<()> {
    let archive = docker.dir().join("suite.tar");
    suite_root(&archive)?;
    docker.said(&["import", &archive.to_string_lossy(), SUITE_IMAGE])?;
    Ok(std::fs::remove_file(archive)?)
}

/// What a daemon has to be told.
pub(crate) fn settings(docker: &PrivateDocker) -> Vec<(String, String)> {
    let socket = docker.socket().to_string_lossy().into_owned();
    let settings = [
        ("SANDBANK_ENGINE", "docker"),
        ("SANDBOXD_DOCKER_SOCKET", &*socket),
        ("SANDBANK_DOCKER_IMAGE", SUITE_IMAGE),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Objects in Docker that carry the label of a daemon.
pub(crate) fn residue(docker: &PrivateDocker, instance: &str) -> anyhow::Result<Vec<String>> {
    let mut left = docker.objects_of(instance)?;
    // Workspaces with a name are meant to stay.
    left.retain(|line| !line.contains("-kept-"));
    Ok(left)
}
