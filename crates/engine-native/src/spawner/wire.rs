//! What daemon and spawner say to each other: one JSON message per packet, with descriptors.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::kernel::process::ExitStatus;
use crate::settings::Omitted;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Comes back in the answer.
    pub(crate) serial: u64,
    pub(crate) order: Order,
    /// What each descriptor of the message is for, in order.
    pub(crate) roles: Vec<Role>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// A user namespace that maps 0..65536 to `uid_base`.., owned by `uid_base`.
    UserNamespace {
        uid_base: u32,
    },
    Machine(Box<MachinePlan>),
}

/// A machine, as far as it is not a descriptor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MachinePlan {
    /// The machine's root on the host.
    pub(crate) uid_base: u32,
    /// The workload on the host.
    pub(crate) workload: u32,
    /// The group of terminals on the host, where the machine has more than one group.
    pub(crate) terminals: Option<u32>,
    /// Without root: where the mounts are that are not sent as descriptors.
    pub(crate) host_paths: Option<HostPaths>,
    pub(crate) host_name: String,
    /// Contents of the machine's own files in `/etc`.
    pub(crate) resolv_conf: String,
    pub(crate) hosts: String,
    /// Where the descriptors with [`Role::Bind`] go, in order.
    pub(crate) bind_targets: Vec<String>,
    pub(crate) tmp_bytes: u64,
    pub(crate) shm_bytes: u64,
    pub(crate) open_files: u64,
    pub(crate) processes: u64,
    pub(crate) omitted: Omitted,
}

/// Absolute, on the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HostPaths {
    pub(crate) root: String,
    pub(crate) binds: Vec<String>,
    pub(crate) workspace: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Pipe: a [`crate::spawner::Failure`], or closed by exec.
    Status,
    UserNamespace,
    NetNamespace,
    Listener,
    Config,
    /// The runner's stderr.
    Log,
    Runner,
    Workspace,
    /// A v1 `tasks` file to write "0" to.
    Tasks,
    /// A v2 directory to be cloned into.
    IntoCgroup,
    /// The directory that the runner divides among its commands.
    CommandCgroup,
    OomEvents,
    /// Detached mounts, topmost first.
    Lower,
    Bind,
}

/// Descriptors that a machine's runner inherits, at these numbers.
pub(crate) mod runner_fd {
    pub(crate) const LISTENER: i32 = 240;
    pub(crate) const CONFIG: i32 = 241;
    pub(crate) const CGROUP: i32 = 242;
    pub(crate) const OOM_EVENTS: i32 = 243;
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// With a user namespace or a pidfd.
    Done {
        serial: u64,
        pid: i32,
    },
    Failed {
        serial: u64,
        step: u32,
        errno: i32,
    },
    Died {
        pid: i32,
        status: ExitStatus,
    },
}

/// Descriptors of a message, by role.
#[derive(Debug, Default)]
pub(crate) struct Descriptors(HashMap<Role, Vec<OwnedFd>>);

impl Descriptors {
    /// None when the message names more or fewer than it carries.
    pub(crate) fn assign(roles: &[Role], fds: Vec<OwnedFd>) -> Option<Self> {
        if roles.len() != fds.len() {
            return None;
        }
        let mut by_role: HashMap<Role, Vec<OwnedFd>> = HashMap::new();
        for (role, fd) in roles.iter().zip(fds) {
            by_role.entry(*role).or_default().push(fd);
        }
        Some(Self(by_role))
    }

    pub(crate) fn all(&mut self, role: Role) -> Vec<OwnedFd> {
        self.0.remove(&role).unwrap_or_default()
    }

    pub(crate) fn one(&mut self, role: Role) -> Option<OwnedFd> {
        self.all(role).pop()
    }
}
