//! What the engine tells a runner when it starts it. Holds no secret: the sandbox may see it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Read once at start, as JSON from `--config-fd N` or `--config JSON`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerConfig {
    /// The directory that file operations stay below and commands start in.
    pub workspace: String,
    /// Other names of the workspace that clients use in paths.
    pub workspace_aliases: Vec<String>,
    /// Inherited listening Unix socket; the channel is each connection accepted on it.
    pub listen_fd: Option<i32>,
    /// What the runner does first where no spawner has done it. Needs a workload identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare: Option<PrepareConfig>,
    /// Whom commands run as; the runner's own identity when absent (weaker).
    pub workload: Option<WorkloadIdentity>,
    /// A cgroup directory the runner may divide among its commands.
    pub cgroup: Option<CgroupConfig>,
    pub landlock: Option<LandlockConfig>,
    /// The seccomp program for runner and commands: `sock_filter` array, little-endian, as hex.
    pub seccomp_hex: Option<String>,
    /// For tests of the tests of containment: leave the bounding set as it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_capabilities: bool,
    /// Base environment of every command.
    pub env: BTreeMap<String, String>,
    /// Journal bytes kept per command, and for all commands of the sandbox together.
    pub journal_bytes: u64,
    pub journal_total_bytes: u64,
    /// What the runner writes to its stderr.
    #[serde(skip_serializing_if = "RunnerLog::is_off")]
    pub log: RunnerLog,
}

/// Lines of JSON about the runner's own doing, never with arguments, paths of files or output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerLog {
    #[default]
    Off,
    /// Requests that failed through no fault of the caller.
    Faults,
    /// Every request that failed, and every command's start and end.
    All,
}

impl RunnerLog {
    fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

impl Default for RunnerConfig {
    fn default() -> Self {
        Self {
            workspace: crate::WORKSPACE.to_owned(),
            workspace_aliases: crate::WORKSPACE_ALIASES.map(str::to_owned).to_vec(),
            listen_fd: None,
            prepare: None,
            workload: None,
            cgroup: None,
            landlock: None,
            seccomp_hex: None,
            keep_capabilities: false,
            env: BTreeMap::new(),
            journal_bytes: 8 << 20,
            journal_total_bytes: 64 << 20,
            log: RunnerLog::Off,
        }
    }
}

/// Commands run as this user, with no capability; the runner does file operations as it, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadIdentity {
    pub uid: u32,
    pub gid: u32,
}

/// For a runner that the engine starts as root, with CHOWN, NET_ADMIN, SETUID, SETGID, SETPCAP and
/// KILL. Afterwards it has SETUID, SETGID and KILL, as one that a spawner made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrepareConfig {
    /// Give the workspace directory itself, if it is root's, to the workload.
    pub own_workspace: bool,
    /// Directories of root's own that everybody may write to: a container engine may give them the
    /// mode that the image has in their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_directories: Vec<String>,
    /// Tell out-of-memory kills by the cgroup that the runner was started in, as far as it can be
    /// read.
    pub watch_memory: bool,
    /// Close the way to everything but the public internet; all is left open when absent.
    pub egress: Option<EgressConfig>,
}

/// What is refused and allowed beside [`crate::egress::BLOCKED`], which is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// Refused as well: the host's own public addresses.
    pub refused: Vec<Ipv4Addr>,
    /// Asked for names, on port 53 only, even if they are in a refused range.
    pub resolvers: Vec<Ipv4Addr>,
}

/// An open cgroup directory, owned by the runner's user, below which it makes one child per
/// command so that a timeout can kill everything a command left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupConfig {
    pub version: CgroupVersion,
    /// Inherited directory descriptor (v1: in the freezer hierarchy).
    pub fd: i32,
    /// Inherited descriptor of the file that counts out-of-memory kills
    /// (v1: `memory.oom_control`, v2: `memory.events`).
    pub oom_fd: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    V1,
    V2,
}

/// Everything readable and executable, only these trees writable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockConfig {
    pub writable: Vec<String>,
}
