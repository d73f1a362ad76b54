//! How a sandbox stands, as callers see it.

use std::net::IpAddr;

use sandbank_engine::{ImageName, Limits, MachineStats, NetworkMode, SandboxId, WorkspaceId};
use sandbank_protocol::Stats;
use serde::{Deserialize, Serialize};

use crate::{Cause, SandboxKey};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    Creating,
    Running,
    Paused,
    Stopping,
    /// Ended because somebody or a lease said so.
    Gone,
    /// Ended by itself: it could not be made, its runner died, or it vanished.
    Failed,
}

impl SandboxState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Gone => "gone",
            Self::Failed => "failed",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Gone | Self::Failed)
    }
}

/// Times are Unix times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxInfo {
    pub id: SandboxId,
    pub key: SandboxKey,
    pub state: SandboxState,
    /// Why it is stopping, gone or failed.
    pub reason: Option<String>,
    /// The same for programs.
    pub cause: Option<Cause>,
    pub engine: String,
    pub image: ImageName,
    pub runtime: String,
    pub network: NetworkMode,
    pub limits: Limits,
    /// The allow-list of ports.
    pub ports: Vec<u16>,
    pub published: Vec<Published>,
    /// The kept workspace it has, if not one of its own.
    pub workspace: Option<WorkspaceId>,
    pub created_at_ms: u64,
    pub last_active_at_ms: u64,
    pub idle_ttl_ms: u64,
    /// When it will be stopped if nobody uses it; none while it is busy, and once it has ended.
    pub expires_at_ms: Option<u64>,
    /// When it will be stopped whatever it does.
    pub ends_at_ms: Option<u64>,
    /// Commands run, somebody is attached, or a port connection is open.
    pub busy: bool,
    pub commands_running: u64,
}

/// A port of a sandbox, reachable from outside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Published {
    /// In the sandbox.
    pub port: u16,
    /// On this host.
    pub host_port: u16,
    pub address: IpAddr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxStats {
    /// What the engine measures from outside.
    pub machine: MachineStats,
    /// What the runner says; none while the sandbox is paused.
    pub runner: Option<Stats>,
}
