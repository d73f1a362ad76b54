//! What a machine's container is made of: the hardening, and what its runner is told.

mod body;
mod config;
mod temporary;
mod unstarted;

pub(crate) use body::{LOOPBACK_V6, RUNNER_DIRECTORY, RUNNER_FILE, Recipe, Workspace, body, masks};
pub(crate) use config::{Fences, WORKLOAD_ID};
pub(crate) use temporary::covers;
pub(crate) use unstarted::{bare_volume, unstarted};
