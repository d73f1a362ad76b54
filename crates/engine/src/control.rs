//! Security controls by name, and how each stands on this machine.

use serde::{Deserialize, Serialize};

/// A control that a sandbox relies on. Its name appears in errors, `doctor` and documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    Namespaces,
    UserNamespace,
    IdMappedMounts,
    ReadOnlyRoot,
    MaskedKernelFiles,
    NoCapabilities,
    NoNewPrivileges,
    Seccomp,
    Landlock,
    ResourceLimits,
    MemoryLimit,
    CpuLimit,
    PidsLimit,
    DiskQuota,
    NetworkNone,
    NetworkEgress,
    SeparateRunnerIdentity,
    SurvivesDaemon,
}

impl Control {
    pub const ALL: [Self; 18] = [
        Self::Namespaces,
        Self::UserNamespace,
        Self::IdMappedMounts,
        Self::ReadOnlyRoot,
        Self::MaskedKernelFiles,
        Self::NoCapabilities,
        Self::NoNewPrivileges,
        Self::Seccomp,
        Self::Landlock,
        Self::ResourceLimits,
        Self::MemoryLimit,
        Self::CpuLimit,
        Self::PidsLimit,
        Self::DiskQuota,
        Self::NetworkNone,
        Self::NetworkEgress,
        Self::SeparateRunnerIdentity,
        Self::SurvivesDaemon,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|control| control.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::UserNamespace => "user_namespace",
            Self::IdMappedMounts => "id_mapped_mounts",
            Self::ReadOnlyRoot => "read_only_root",
            Self::MaskedKernelFiles => "masked_kernel_files",
            Self::NoCapabilities => "no_capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::ResourceLimits => "resource_limits",
            Self::MemoryLimit => "memory_limit",
            Self::CpuLimit => "cpu_limit",
            Self::PidsLimit => "pids_limit",
            Self::DiskQuota => "disk_quota",
            Self::NetworkNone => "network_none",
            Self::NetworkEgress => "network_egress",
            Self::SeparateRunnerIdentity => "separate_runner_identity",
            Self::SurvivesDaemon => "survives_daemon",
        }
    }
}

/// One line of `sandbank doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    pub control: Control,
    pub standing: Standing,
    /// What was found, in a sentence.
    pub detail: String,
    /// What to do about it, when it is not in force.
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    InForce,
    Weaker,
    Missing,
}
