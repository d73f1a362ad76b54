//! Which controls are in force: what the engine lacks, what a container looks like from outside,
//! and what a machine is meant to withstand.

mod attempt;
mod cgroups;
mod confinement;
mod host;
mod own_kernel;
mod process;
mod report;
mod users;

pub(crate) use confinement::{confinement, key};
pub(crate) use host::Host;
pub(crate) use report::{Cache, report};
pub(crate) use users::Users;

use sandbank_engine::{Control, EngineError, MachineSpec};

use crate::lifecycle::Parts;

/// A control that cannot be had here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortcoming {
    pub(crate) control: Control,
    pub(crate) reason: String,
    pub(crate) fix: String,
}

const QUOTA_FIX: &str =
    "create sandboxes without a disk limit, or use the native engine with btrfs storage";

/// Containers are made without a user namespace, unless the whole engine has one, and never with
/// mapped mounts: whoever chose Docker goes without both, and is told.
pub(crate) fn relies_on(control: Control) -> bool {
    !matches!(control, Control::UserNamespace | Control::IdMappedMounts)
}

/// Fails with the name of a control that the machine relies on and that cannot be enforced.
pub(crate) fn require(parts: &Parts, spec: &MachineSpec) -> Result<(), EngineError> {
    for lack in &parts.host.shortcomings {
        if relies_on(lack.control) && !parts.allows_without(lack.control) {
            let reason = format!("{}; {}", lack.reason, lack.fix);
            return Err(EngineError::ControlUnavailable { control: lack.control, reason });
        }
    }
    if spec.limits.disk_bytes.is_some() && !parts.allows_without(Control::DiskQuota) {
        return Err(EngineError::ControlUnavailable {
            control: Control::DiskQuota,
            reason: format!("Docker's volumes have no quota; {QUOTA_FIX}"),
        });
    }
    Ok(())
}
