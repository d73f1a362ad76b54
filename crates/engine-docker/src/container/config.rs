//! What the runner of a machine is told, on its command line: nothing of it is secret.

use std::collections::BTreeMap;

use sandbank_protocol::{
    EgressConfig, LandlockConfig, PrepareConfig, RunnerConfig, RunnerLog, WORKSPACE,
    WorkloadIdentity,
};

use super::temporary;

/// User and group of commands. Images are used as they are, so it may have another name there.
pub(crate) const WORKLOAD_ID: u32 = 1000;

/// The only trees that are writable. The root is read-only anyway: this is the second fence.
/// `/proc` is among them for programs that name their threads or adjust their own OOM score.
const WRITABLE: [&str; 5] = [WORKSPACE, "/tmp", "/var/tmp", "/dev", "/proc"];

/// What the runner puts between itself and the workload. Each is absent only where the
/// configuration accepts that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fences<'a> {
    pub(crate) landlock: bool,
    /// Between a machine with network and private addresses.
    pub(crate) egress: bool,
    pub(crate) seccomp_hex: Option<&'a str>,
}

pub(super) fn arguments(
    env: BTreeMap<String, String>,
    egress: Option<EgressConfig>,
    has_cgroups: bool,
    fences: Fences<'_>,
) -> Vec<String> {
    let config = RunnerConfig {
        prepare: Some(PrepareConfig {
            own_workspace: true,
            open_directories: temporary::WRITABLE.map(str::to_owned).to_vec(),
            watch_memory: has_cgroups,
            egress,
        }),
        workload: Some(WorkloadIdentity { uid: WORKLOAD_ID, gid: WORKLOAD_ID }),
        landlock: fences
            .landlock
            .then(|| LandlockConfig { writable: WRITABLE.map(str::to_owned).to_vec() }),
        seccomp_hex: fences.seccomp_hex.map(str::to_owned),
        env,
        log: RunnerLog::Faults,
        ..RunnerConfig::default()
    };
    let config = serde_json::to_string(&config).expect("a configuration is plain data");
    ["serve", "--stdio", "--config"].map(str::to_owned).into_iter().chain([config]).collect()
}
