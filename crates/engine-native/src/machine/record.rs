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
    /// None until it was cloned.
    pub(crate) process: Option<ProcessKey>,
}
