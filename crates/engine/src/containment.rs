//! How a machine is meant to be confined, and what of that shows on the host.
//!
//! Half of a test of containment: the other half are attacks from inside, which whoever speaks
//! with the machine's runner carries out with what is expected here.

use std::net::SocketAddr;

use sandbank_protocol::containment::{BatteryPlan, Finding, Outcome, Probe, Side};

use crate::{Control, MachineSpec, NetworkMode};

#[derive(Debug, Clone)]
pub struct Confinement {
    pub spec: MachineSpec,
    pub expected: Expected,
    /// One for each probe of the host's side that the engine can make.
    pub seen: Vec<HostFinding>,
    /// Controls that this machine is known to go without, and why.
    pub without: Vec<(Control, String)>,
}

impl Confinement {
    /// What the attacks from inside should try. `alone`: nothing else runs in the machine, so
    /// limits may be run into.
    pub fn battery_plan(&self, alone: bool) -> BatteryPlan {
        let (spec, expected) = (&self.spec, self.expected.clone());
        let quota = spec.limits.disk_bytes.filter(|_| expected.quota);
        BatteryPlan {
            identity: expected.identity,
            unreachable: expected.unreachable,
            hidden: expected.hidden,
            fixed: expected.fixed,
            limits: expected.limits,
            burst: alone.then_some(spec.limits.pids),
            fill: quota.filter(|_| alone),
            loopback_only: spec.network == NetworkMode::None,
            private: expected.private,
            cgroups_shown: expected.cgroups_shown,
            runner_shown: expected.runner_shown,
        }
    }

    /// What came of a probe, from either side. None when it gave no answer.
    pub fn finding(&self, probe: &Probe, inside: &[Finding]) -> Option<Finding> {
        match probe.side {
            Side::Inside => inside.iter().find(|finding| finding.probe == probe.name).cloned(),
            Side::Host => self.seen.iter().find(|seen| seen.probe == probe.name).map(|seen| {
                let outcome = if seen.held { Outcome::Held } else { Outcome::Failed };
                Finding::new(seen.probe, outcome, seen.evidence.clone())
            }),
        }
    }
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
    /// Whether it sees its own cgroups, which it cannot change.
    pub cgroups_shown: bool,
    /// Whether it sees that there is a first process, into which it cannot look.
    pub runner_shown: bool,
}

/// Something the engine looked at from outside, where nothing inside can forge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFinding {
    /// Its name in the table of probes.
    pub probe: &'static str,
    pub held: bool,
    pub evidence: String,
}
