//! The handshake: who is at the other end, and do both speak the same version.

use serde::{Deserialize, Serialize};

/// Raised when a change is not understood by the other side. A daemon keeps serving older
/// runners that it lists in [`Hello::is_compatible`].
pub const PROTOCOL_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub runner_version: String,
    /// Random per runner start: a new value means that every command of the old one is gone.
    pub epoch: String,
    /// Unix time in milliseconds.
    pub started_at_ms: u64,
    pub workspace: String,
}

impl Hello {
    pub fn is_compatible(&self) -> bool {
        self.protocol == PROTOCOL_VERSION
    }
}
