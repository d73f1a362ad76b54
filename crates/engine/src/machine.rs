//! A machine: what is asked for, what was made, how it fares.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ImageName, SandboxId, WorkspaceId};

/// Everything an engine needs to make a machine. Every field is enforced or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSpec {
    pub id: SandboxId,
    pub image: ImageName,
    pub limits: Limits,
    pub network: NetworkMode,
    /// Base environment of every command.
    pub env: BTreeMap<String, String>,
    /// None: a workspace of its own, which dies with it. Some: the kept one of that name, which
    /// is made when it is not there.
    #[serde(default)]
    pub workspace: Option<WorkspaceId>,
}

impl MachineSpec {
    /// A small machine without network, made to be looked at and destroyed.
    pub fn probe(image: ImageName) -> Self {
        Self {
            id: SandboxId::random(),
            image,
            limits: Limits {
                cpu_millis: 1000,
                memory_bytes: 256 << 20,
                pids: 64,
                disk_bytes: None,
                tmp_bytes: 1 << 20,
            },
            network: NetworkMode::None,
            env: BTreeMap::new(),
            workspace: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// In thousandths of a core.
    pub cpu_millis: u32,
    pub memory_bytes: u64,
    pub pids: u32,
    /// Quota of the workspace; none means that no quota was asked for. A kept workspace has the
    /// smallest that any machine that has it asked for.
    pub disk_bytes: Option<u64>,
    /// Size of `/tmp`.
    pub tmp_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Loopback only.
    None,
    /// Egress to public addresses; private, link-local and host addresses are blocked.
    Default,
}

/// Lengths of the prefix of a network that sandboxes may have addresses of: more than private ranges
/// have, and less than two sandboxes need, are refused.
pub const SUBNET_PREFIXES: std::ops::RangeInclusive<u8> = 12..=29;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub id: SandboxId,
    pub state: MachineState,
    /// On the host, where the engine knows it.
    pub pid: Option<i32>,
    /// Whether its kept workspace was made for it; said by `create` only.
    pub made_workspace: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineState {
    Running,
    Paused,
    /// Its first process is gone, or it was never finished; only `destroy` helps.
    Dead,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineStats {
    pub memory_bytes: u64,
    pub memory_peak_bytes: u64,
    pub cpu_usage_us: u64,
    pub pids: u64,
    pub disk_bytes: u64,
    pub oom_kills: u64,
}

/// Why a machine's first process died, as far as the engine can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeathCause {
    OutOfMemory,
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// It may well run, but its workspace was removed or unmounted behind the engine's back, and a
    /// machine without its workspace counts as dead.
    WorkspaceGone,
    /// Somebody else had its container removed, and so killed.
    ContainerRemoved,
    /// Somebody else had its container killed, with signal 9: at once, or as it was stopped.
    ContainerKilled,
    /// It was not our child, so nobody can tell.
    Unknown,
}
