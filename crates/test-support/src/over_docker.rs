//! The same tests over another engine: with `SANDBANK_TEST_ENGINE=docker`, every [`TestDaemon`]
//! makes its sandboxes in a Docker of the tests' own.
//!
//! [`TestDaemon`]: crate::TestDaemon

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use crate::{PrivateDocker, residue, suite_root};

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

/// The engine that the tests are about, for whatever of ours is started by hand. Its Docker goes
/// with the last who has it.
#[derive(Clone)]
pub struct EngineUnderTest {
    /// Where sandboxes are, if not on this machine itself.
    docker: Option<Arc<PrivateDocker>>,
}

impl EngineUnderTest {
    pub fn get() -> anyhow::Result<Self> {
        if !is_over_docker() {
            return Ok(Self { docker: None });
        }
        let docker = PrivateDocker::shared(import_suite)?;
        let docker = docker.with_context(|| format!("{SWITCH} asks for Docker"))?;
        Ok(Self { docker: Some(docker) })
    }

    pub fn docker(&self) -> Option<&Arc<PrivateDocker>> {
        self.docker.as_ref()
    }

    /// What a daemon has to be told, by its environment.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let Some(docker) = &self.docker else { return Vec::new() };
        vec![
            ("SANDBANK_ENGINE", "docker".to_owned()),
            ("SANDBOXD_DOCKER_SOCKET", docker.socket().to_string_lossy().into_owned()),
            ("SANDBANK_DOCKER_IMAGE", SUITE_IMAGE.to_owned()),
        ]
    }

    /// What there is of a data directory's daemon on the host and in Docker, and does not go by
    /// itself.
    pub fn residue(&self, data_dir: &Path) -> anyhow::Result<Vec<String>> {
        let mut left = residue::of(data_dir);
        let instance = std::fs::read_to_string(data_dir.join("instance")).ok();
        if let (Some(docker), Some(instance)) = (&self.docker, instance) {
            left.extend(in_docker(docker, instance.trim())?);
        }
        Ok(left)
    }
}

/// Objects in Docker that carry the label of a daemon.
fn in_docker(docker: &PrivateDocker, instance: &str) -> anyhow::Result<Vec<String>> {
    let mut left = docker.objects_of(instance)?;
    // Workspaces with a name are meant to stay.
    left.retain(|line| !line.contains("-kept-"));
    Ok(left)
}

/// Makes [`SUITE_IMAGE`].
pub fn import_suite(docker: &PrivateDocker) -> anyhow::Result<()> {
    let archive = docker.dir().join("suite.tar");
    suite_root(&archive)?;
    docker.said(&["import", &archive.to_string_lossy(), SUITE_IMAGE])?;
    Ok(std::fs::remove_file(archive)?)
}
