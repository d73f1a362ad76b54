//! What is known of a sandbox after its death.

use sandbank_engine::{MachineStats, SandboxId};
use sandbank_protocol::CommandStatus;
use serde::{Deserialize, Serialize};

use crate::{Cause, SandboxKey};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostMortem {
    pub id: SandboxId,
    pub key: SandboxKey,
    pub cause: Cause,
    /// Unix time in milliseconds.
    pub created_at_ms: u64,
    pub ended_at_ms: u64,
    /// As last seen, zero where the engine could not tell.
    pub peaks: MachineStats,
    /// Newest last.
    pub last_commands: Vec<CommandStatus>,
    /// The tail of what the last commands printed, lossy where it was not UTF-8.
    pub last_output: String,
}
