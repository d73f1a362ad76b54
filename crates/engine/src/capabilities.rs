//! What an engine can do on this machine. The orchestrator refuses what it cannot.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub network_egress: bool,
    pub disk_quota: bool,
    pub memory_limit: bool,
    pub cpu_limit: bool,
    pub pids_limit: bool,
    pub pause: bool,
    /// Workspaces with a name, which outlive their machines.
    pub kept_workspaces: bool,
    /// Creates that make sense at the same time; more are queued.
    pub concurrent_creates: usize,
}
