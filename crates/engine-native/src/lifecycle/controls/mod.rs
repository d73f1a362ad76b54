//! Which controls are in force on this host: what was missing at start, and what a machine made
//! for the purpose looks like from outside.

mod confinement;
mod kernel;
mod posture;
mod report;

use sandbank_engine::{Control, EngineError, MachineSpec, NetworkMode};

pub(super) use confinement::{confinement, key, limits, remove_canary, runner_digest};
pub(super) use kernel::find_shortcomings;
pub(super) use report::{Cache, report};

use super::Parts;

/// A control that cannot be had here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shortcoming {
    pub(super) control: Control,
    pub(super) reason: String,
    pub(super) fix: String,
}

impl Parts {
    /// Whether the configuration accepts to go without.
    pub(super) fn allows_without(&self, control: Control) -> bool {
        self.settings.allow_weaker.contains(&control)
    }

    /// In force, or at least not known to be missing.
    pub(super) fn has(&self, control: Control) -> bool {
        !self.shortcomings.iter().any(|lack| lack.control == control)
    }

    /// The quota to ask the storage for: none where it was accepted that there is none.
    pub(super) fn quota(&self, spec: &MachineSpec) -> Option<u64> {
        spec.limits.disk_bytes.filter(|_| self.storage.enforces_quota())
    }
}

/// Fails with the name of a control that the machine relies on and that cannot be enforced.
pub(super) fn require(parts: &Parts, spec: &MachineSpec) -> Result<(), EngineError> {
    for lack in &parts.shortcomings {
        if !parts.allows_without(lack.control) {
            let reason = format!("{}; {}", lack.reason, lack.fix);
            return Err(EngineError::ControlUnavailable { control: lack.control, reason });
        }
    }
    if spec.limits.disk_bytes.is_some()
        && !parts.storage.enforces_quota()
        && !parts.allows_without(Control::DiskQuota)
    {
        return Err(EngineError::ControlUnavailable {
            control: Control::DiskQuota,
            reason: format!("storage {:?} enforces no quota; {QUOTA_FIX}", parts.storage.kind()),
        });
    }
    match (spec.network, parts.egress()) {
        (NetworkMode::Default, Err(reason)) => {
            Err(EngineError::ControlUnavailable { control: Control::NetworkEgress, reason })
        }
        _ => Ok(()),
    }
}

pub(super) const QUOTA_FIX: &str = "use btrfs storage, or create sandboxes without a disk limit";
