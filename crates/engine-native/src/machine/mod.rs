//! What a machine is on disk and to its runner.

mod config;
mod directory;
pub(crate) mod log;
mod record;

pub(crate) use config::{Fences, config_file};
pub(crate) use directory::Directory;
pub(crate) use record::{Record, boot_id};

/// Whom commands run as inside every machine, user and group.
pub(crate) const WORKLOAD_ID: u32 = 1000;
