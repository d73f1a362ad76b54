//! What a spawner would have done outside, done by the runner itself before it serves.
//!
//! In a container of somebody else's making the runner starts as root with a few capabilities. It
//! gives the workspace to the workload, closes the network to everything but the public internet,
//! and gives the capabilities up. A step that was asked for and fails ends the runner.

mod filter;
mod netlink;
mod route;
mod routes;

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use sandbank_protocol::{EgressConfig, RunnerConfig, WorkloadIdentity};
use sandbank_rooted_fs::open_absolute;

use crate::privileges;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error("there is no workload to prepare for")]
    NoWorkload,
    #[error("cannot give the workspace to the workload: {0}")]
    Workspace(io::Error),
    #[error("cannot open {path} to everybody: {error}")]
    Temporary { path: String, error: io::Error },
    #[error("cannot close the network: failed to {step}: {error}")]
    Kernel { step: &'static str, error: io::Error },
    #[error("the network is not closed as it should be: {0}")]
    NotAsAsked(String),
    #[error(transparent)]
    Capabilities(#[from] privileges::ConfineError),
}

/// Before [`privileges::confine`], which needs what is kept here.
pub(crate) fn prepare(config: &RunnerConfig) -> Result<(), PrepareError> {
    let Some(prepare) = &config.prepare else { return Ok(()) };
    let workload = config.workload.as_ref().ok_or(PrepareError::NoWorkload)?;
    if prepare.own_workspace {
        give_workspace(&config.workspace, workload).map_err(PrepareError::Workspace)?;
    }
    for path in &prepare.open_directories {
        let failed = |error| PrepareError::Temporary { path: path.clone(), error };
        open_to_everybody(path).map_err(failed)?;
    }
    if let Some(egress) = &prepare.egress {
        close(egress)?;
    }
    privileges::keep_for_confinement()?;
    Ok(())
}

fn directory(path: &str) -> io::Result<OwnedFd> {
    Ok(open_absolute(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?)
}

/// But nobody may remove what is another's.
fn open_to_everybody(path: &str) -> io::Result<()> {
    Ok(rustix::fs::fchmod(directory(path)?, Mode::from_raw_mode(0o1777))?)
}

/// By descriptor, and the directory alone: what is in it is the workload's affair.
fn give_workspace(path: &str, workload: &WorkloadIdentity) -> io::Result<()> {
    let directory = directory(path)?;
    if rustix::fs::fstat(&directory)?.st_uid == 0 {
        let (uid, gid) = (Uid::from_raw(workload.uid), Gid::from_raw(workload.gid));
        rustix::fs::fchown(&directory, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// The filter decides; the routes make that a refusal is known at once, and not after a timeout.
/// Routes alone would not do: the kernel takes any address for a neighbour's when a program names
/// the device to send by, and asks no table for broadcasts.
fn close(egress: &EgressConfig) -> Result<(), PrepareError> {
    let found = routes::read()?;
    let plan = routes::Plan::new(&found, egress)?;
    filter::load(&plan.refused, &egress.resolvers)?;
    plan.apply(&found)?;
    plan.check(&routes::read()?)
}
