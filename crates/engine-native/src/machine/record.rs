//! `machine.json`: all that a new daemon needs to know about a machine it did not make.

use sandbank_engine::MachineSpec;
use serde::{Deserialize, Serialize};

use crate::kernel::process::ProcessKey;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) spec: MachineSpec,
    /// Its range of user ids.
    pub(crate) uid_slot: u32,
    pub(crate) network_slot: Option<u32>,
    /// The kernel's name for the time since it was started: no process outlives that.
    pub(crate) boot: String,
    /// None until it was cloned.
    pub(crate) process: Option<ProcessKey>,
    /// SHA-256 of the runner it was started with, which outlives an upgrade. Empty where an earlier
    /// version wrote the record.
    #[serde(default)]
    pub(crate) runner_digest: String,
}

impl Record {
    /// Its first process, if it can still exist.
    pub(crate) fn process_since(&self, boot: &str) -> Option<ProcessKey> {
        self.process.filter(|_| self.boot == boot)
    }
}

/// Which boot this is.
pub(crate) fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
