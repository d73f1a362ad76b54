//! How a machine is meant to be confined, and what of that shows on the host.
//!
//! Half of a test of containment: the other half are attacks from inside, which whoever speaks
//! with the machine's runner carries out with what is expected here.

use std::net::SocketAddr;

use crate::{Control, MachineSpec};

#[derive(Debug, Clone)]
pub struct Confinement {
    pub spec: MachineSpec,
    pub expected: Expected,
    /// One for each probe of the host's side that the engine can make.
    pub seen: Vec<HostFinding>,
    /// Controls that this machine is known to go without, and why.
    pub without: Vec<(Control, String)>,
}

/// What an attacker inside should find.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// User and group of commands, inside.
    pub identity: Option<(u32, u32)>,
    /// Paths of the host that exist there and must not be reachable.
    pub unreachable: Vec<String>,
    /// Kernel files that are covered, and others that are read-only.
    pub hidden: Vec<String>,
    pub fixed: Vec<String>,
    /// The most that a resource limit may be, by its name in `RLIMIT_…`.
    pub limits: Vec<(String, u64)>,
    /// Whether the storage holds the workspace to its quota.
    pub quota: bool,
    /// Addresses that must not answer when there is a network.
    pub private: Vec<SocketAddr>,
}

/// Something the engine looked at from outside, where nothing inside can forge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFinding {
    /// Its name in the table of probes.
    pub probe: &'static str,
    pub held: bool,
    pub evidence: String,
}
