//! What the runner gives up before it takes its first request.
//!
//! Runs once, on the only thread there is, so that every later thread and command inherits it.
//! A step that was asked for and fails ends the runner: it never serves with less confinement.

mod capabilities;
mod identity;
mod landlock;
mod seccomp;

pub(crate) use identity::{AsRunner, FileIdentity};
pub(crate) use seccomp::Program;

use std::io;

use sandbank_protocol::{CgroupVersion, RunnerConfig};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error("{step} failed: {error}")]
    Kernel { step: &'static str, error: io::Error },
    #[error("landlock cannot be enforced: {0}")]
    Landlock(String),
    #[error("the seccomp program is malformed")]
    MalformedSeccomp,
}

impl ConfineError {
    fn last(step: &'static str) -> Self {
        Self::Kernel { step, error: io::Error::last_os_error() }
    }
}

/// The whole sequence. The order matters: dropping capabilities needs one of them, file rights
/// change before landlock opens its paths, and seccomp forbids what came before it.
///
/// Returns whose rights files are used with, and the filter that commands get beside the runner's.
pub(crate) fn confine(
    config: &RunnerConfig,
) -> Result<(FileIdentity, Option<Program>), ConfineError> {
    refuse_inspection()?;
    let identity = FileIdentity::new(config.workload.as_ref());
    if config.workload.is_some() {
        if !config.keep_capabilities {
            capabilities::drop_bounding_set()?;
        }
        capabilities::give_up_setpcap()?;
        identity.become_workload()?;
    }
    if let Some(landlock) = &config.landlock {
        landlock::restrict(&landlock.writable)?;
    }
    let for_commands = match &config.seccomp_hex {
        Some(hex) => filter_calls(hex, config)?,
        None => None,
    };
    Ok((identity, for_commands))
}

/// Gives up the capabilities that only [`crate::prepare`] needed.
pub(crate) fn keep_for_confinement() -> Result<(), ConfineError> {
    capabilities::keep_only_needed()
}

/// A filter for every command costs each of them its compilation. It is needed only where the
/// runner itself uses what they may not.
fn filter_calls(hex: &str, config: &RunnerConfig) -> Result<Option<Program>, ConfineError> {
    Program::from_hex(hex)?.install()?;
    match config.cgroup.as_ref().map(|cgroup| cgroup.version) {
        Some(CgroupVersion::V2) => Ok(Some(seccomp::hide_clone3())),
        Some(CgroupVersion::V1) => {
            seccomp::hide_clone3().install()?;
            Ok(None)
        }
        None => Ok(Some(seccomp::hide_clone3_and_keep_stamps())),
    }
}

/// Nothing in the sandbox may read the runner's memory or descriptors. Exec resets this flag,
/// so only the runner itself can set it.
fn refuse_inspection() -> Result<(), ConfineError> {
    // SAFETY: PR_SET_DUMPABLE takes plain integers.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(ConfineError::last("PR_SET_DUMPABLE")),
    }
}
