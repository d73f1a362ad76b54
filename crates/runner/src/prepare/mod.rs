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

use rustix::fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use sandbank_protocol::{EgressConfig, RunnerConfig, WorkloadIdentity};

use crate::privileges;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error("there is no workload to prepare for")]
    NoWorkload,
    #[error("cannot give the workspace to the workload: {0}")]
    Workspace(io::Error),
    #[error("cannot open {path} to everybody: {error}")]
    Temporary { path: &'static str, error: io::Error },
    #[error("cannot close the network: failed to {step}: {error}")]
    Kernel { step: &'static str, error: io::Error },
    #[error("the network is not closed as it should be: {0}")]
    NotAsAsked(String),
    #[error(transparent)]
    Capabilities(#[from] privileges::ConfineError),
}

const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
const EVERYBODYS: u32 = 0o1777;

/// Everybody's, whatever the image has there.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Before [`privileges::confine`], which needs what is kept here.
pub(crate) fn prepare(config: &RunnerConfig) -> Result<(), PrepareError> {
    let Some(prepare) = &config.prepare else { return Ok(()) };
    let workload = config.workload.as_ref().ok_or(PrepareError::NoWorkload)?;
    if prepare.own_workspace {
        give_workspace(&config.workspace, workload).map_err(PrepareError::Workspace)?;
        for path in TEMPORARY {
            open_to_all(path).map_err(|error| PrepareError::Temporary { path, error })?;
        }
    }
    if let Some(egress) = &prepare.egress {
        close(egress)?;
    }
    privileges::keep_for_confinement()?;
    Ok(())
}

/// By descriptor, and the directory alone: what is in it is the workload's affair.
fn give_workspace(path: &str, workload: &WorkloadIdentity) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_MAGICLINKS;
    let directory = rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?;
    if rustix::fs::fstat(&directory)?.st_uid == 0 {
        let (uid, gid) = (Uid::from_raw(workload.uid), Gid::from_raw(workload.gid));
        rustix::fs::fchown(&directory, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Some runtimes give a temporary file system the mode of the image's directory that it covers,
/// whatever they are asked for. What is no such file system is left as it is.
fn open_to_all(path: &str) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
    let directory = match found {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let found = rustix::fs::fstat(&directory)?;
    let is_own = rustix::fs::fstatfs(&directory)?.f_type == TMPFS_MAGIC && found.st_uid == 0;
    if is_own && found.st_mode & 0o7777 != EVERYBODYS {
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(EVERYBODYS))?;
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
