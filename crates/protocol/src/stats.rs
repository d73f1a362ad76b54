//! What is going on inside a sandbox right now, as the runner sees it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub commands_running: u64,
    /// Since the runner started, also those it has forgotten.
    pub commands_ended: u64,
    pub processes: u64,
    pub tunnels_open: u64,
    pub readers_open: u64,
    /// Bytes held in journals.
    pub journal_bytes: u64,
    /// Seconds since the runner started.
    pub uptime_s: u64,
    /// Of the workspace's file system, where it can be told.
    pub disk_used_bytes: u64,
    pub disk_total_bytes: u64,
}
