//! What the runner of a machine is told, in a file that it reads once.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use sandbank_protocol::{
    CgroupConfig, CgroupVersion, LandlockConfig, RunnerConfig, RunnerLog, WORKSPACE,
    WorkloadIdentity,
};

use super::WORKLOAD_ID;
use crate::spawner::wire::runner_fd;

/// The only trees that are writable. The root is read-only anyway: this is the second fence.
/// `/proc` is among them for programs that name their threads or adjust their own OOM score.
const WRITABLE: [&str; 4] = [WORKSPACE, "/tmp", "/dev", "/proc"];

/// With the cgroup that the runner divides: it is outside of the machine's root, reachable by
/// descriptor only, and the runner alone has one.
fn writable(with_cgroup: bool) -> Vec<String> {
    let cgroup = with_cgroup.then(|| format!("/proc/self/fd/{}", runner_fd::CGROUP));
    WRITABLE.map(str::to_owned).into_iter().chain(cgroup).collect()
}

/// What the runner puts between itself and the workload. Each is absent only where the
/// configuration accepts that.
pub(crate) struct Fences<'a> {
    /// Commands are another user than the runner.
    pub(crate) own_identity: bool,
    pub(crate) landlock: bool,
    pub(crate) seccomp_hex: Option<&'a str>,
    /// For tests only; see [`crate::Omitted`].
    pub(crate) keep_capabilities: bool,
}

/// `cgroup` and `counts_oom` say which of the optional descriptors are passed.
pub(crate) fn config_file(
    env: std::collections::BTreeMap<String, String>,
    cgroup: Option<CgroupVersion>,
    counts_oom: bool,
    fences: Fences<'_>,
) -> io::Result<OwnedFd> {
    let config = RunnerConfig {
        listen_fd: Some(runner_fd::LISTENER),
        workload: fences
            .own_identity
            .then_some(WorkloadIdentity { uid: WORKLOAD_ID, gid: WORKLOAD_ID }),
        cgroup: cgroup.map(|version| CgroupConfig {
            version,
            fd: runner_fd::CGROUP,
            oom_fd: counts_oom.then_some(runner_fd::OOM_EVENTS),
        }),
        landlock: fences.landlock.then(|| LandlockConfig { writable: writable(cgroup.is_some()) }),
        seccomp_hex: fences.seccomp_hex.map(str::to_owned),
        keep_capabilities: fences.keep_capabilities,
        env,
        log: RunnerLog::All,
        ..RunnerConfig::default()
    };
    let file = rustix::fs::memfd_create("runner-config", MemfdFlags::CLOEXEC)?;
    let mut rest = &serde_json::to_vec(&config)?[..];
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}
