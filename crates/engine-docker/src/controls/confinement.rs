//! How a machine is meant to be confined, and what of that shows outside of it: in the engine's
//! description of the container, and in the host's `/proc` where that is ours to see.

use std::net::SocketAddr;
use std::sync::Arc;

use bollard::models::{ContainerInspectResponse, HostConfig};
use sandbank_engine::{
    Confinement, Control, EngineError, Expected, HostFinding, MachineSpec, NetworkMode, SandboxId,
    sha256_hex,
};
use sandbank_protocol::egress::EXAMPLES;

use super::cgroups;
use super::process::Process;
use crate::connection::{Address, status_of};
use crate::container::{WORKLOAD_ID, masks};
use crate::egress::Egress;
use crate::lifecycle::Parts;
use crate::limits::{MAX_LOCKED_BYTES, MAX_OPEN_FILES};
use crate::{naming, runner_volume};

pub(crate) async fn confinement(
    parts: &Arc<Parts>,
    id: &SandboxId,
) -> Result<Confinement, EngineError> {
    let found = inspect(parts, id).await?;
    let spec = spec_of(&found).ok_or_else(|| EngineError::NotFound(id.clone()))?;
    let process = process_of(parts, &found).await?;
    let config = found.host_config.clone().unwrap_or_default();
    let mut seen = vec![
        namespaces(process.as_ref(), &config),
        identity(parts, process.as_ref()),
        HostFinding {
            probe: "host_ownership",
            held: false,
            evidence: "containers have no mapped mounts".to_owned(),
        },
        program(process.as_ref(), &found),
    ];
    seen.extend(cgroups::findings(&spec.limits, process.as_ref(), &config));
    let private = match spec.network {
        NetworkMode::Default => private(&parts.egress().await?),
        NetworkMode::None => Vec::new(),
    };
    let (expected, without) = (expected(parts, private), without(parts, &spec));
    Ok(Confinement { expected, without, seen, spec })
}

pub(super) async fn inspect(
    parts: &Parts,
    id: &SandboxId,
) -> Result<ContainerInspectResponse, EngineError> {
    let found = match parts.client.api().inspect_container(&naming::container(id), None).await {
        Ok(found) => found,
        Err(error) if status_of(&error).is_some_and(|refusal| refusal.status == 404) => {
            return Err(EngineError::NotFound(id.clone()));
        }
        Err(error) => return Err(parts.client.failed("look at a container")(error)),
    };
    match found.state.as_ref().and_then(|state| state.running) {
        Some(true) => Ok(found),
        _ => Err(EngineError::Dead(id.clone())),
    }
}

/// None where it is out of sight, or the process of another kernel.
pub(super) async fn process_of(
    parts: &Parts,
    found: &ContainerInspectResponse,
) -> Result<Option<Process>, EngineError> {
    if parts.host.own_kernel {
        return Ok(None);
    }
    let container = found.id.clone().unwrap_or_default();
    let looking = tokio::task::spawn_blocking(move || Process::of(&container));
    looking.await.map_err(|error| EngineError::Internal(error.to_string()))
}

fn label<'a>(found: &'a ContainerInspectResponse, name: &str) -> Option<&'a String> {
    found.config.as_ref()?.labels.as_ref()?.get(name)
}

fn spec_of(found: &ContainerInspectResponse) -> Option<MachineSpec> {
    serde_json::from_str(label(found, naming::SPEC)?).ok()
}

/// What a test of containment holds for: everything that machines are made with and of.
pub(crate) fn key(parts: &Parts) -> String {
    let settings = &parts.settings;
    let weaker: Vec<_> = settings.allow_weaker.iter().map(|one| one.name()).collect();
    [
        format!("sandbank {}", env!("CARGO_PKG_VERSION")),
        format!("runner {}", runner_volume::digest()),
        parts.host.fingerprint.clone(),
        format!("boot {}", boot(parts)),
        format!("network {}", parts.network.name),
        format!("host {:?}, resolvers {:?}", settings.host_addresses, settings.resolvers),
        format!("weaker {}", weaker.join(",")),
    ]
    .join("; ")
}

/// Of the host, where the engine is on this one. Engines do not tell, and what a kernel was started
/// with may have changed with it.
fn boot(parts: &Parts) -> String {
    let here = matches!(parts.client.found.address, Address::Unix(_));
    let told = here.then(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok());
    told.flatten().map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn finding(probe: &'static str, held: bool, evidence: impl Into<String>) -> HostFinding {
    HostFinding { probe, held, evidence: evidence.into() }
}

fn namespaces(process: Option<&Process>, config: &HostConfig) -> HostFinding {
    let probe = "host_namespaces";
    match process.map(Process::shared_namespaces) {
        Some(shared) if shared.is_empty() => finding(probe, true, "none but the user's is shared"),
        Some(shared) => finding(probe, false, format!("shared: {}", shared.join(", "))),
        None => {
            let own = |mode: &Option<String>| mode.as_deref().is_none_or(|mode| mode != "host");
            let modes =
                [&config.pid_mode, &config.uts_mode, &config.ipc_mode, &config.network_mode];
            let held = modes.into_iter().all(own);
            finding(probe, held, "out of sight; as Docker describes it")
        }
    }
}

fn identity(parts: &Parts, process: Option<&Process>) -> HostFinding {
    let user = process.and_then(Process::user);
    let held = match user {
        Some(user) => user != 0,
        None => parts.host.users.how().is_some(),
    };
    let shown = user.map_or_else(|| "out of sight".to_owned(), |user| format!("user {user}"));
    finding("host_identity", held, format!("its root is {shown} on Docker's host"))
}

/// The one that a daemon started, from a volume that the container cannot write to.
fn program(process: Option<&Process>, found: &ContainerInspectResponse) -> HostFinding {
    let probe = "host_runner_program";
    let mounts = found.mounts.iter().flatten();
    let mut runner = mounts
        .filter(|mount| mount.destination.as_deref() == Some(crate::container::RUNNER_DIRECTORY));
    if runner.next().is_none_or(|mount| mount.rw != Some(false)) {
        return finding(probe, false, "its volume is writable");
    }
    let recorded = label(found, naming::RUNNER).map(String::as_str).unwrap_or_default();
    match process.map(Process::program) {
        Some(Ok(program)) if sha256_hex(&program) == recorded => {
            finding(probe, true, "read-only, and the one that was built in")
        }
        Some(Ok(_)) => finding(probe, false, "it is not the one that a daemon started"),
        Some(Err(error)) => finding(probe, false, format!("it cannot be read: {error}")),
        None => finding(probe, true, "read-only; compared when the volume was filled"),
    }
}

/// What must not answer: one of each private kind, and the host. The port does not matter.
pub(super) fn private(egress: &Egress) -> Vec<SocketAddr> {
    let addresses = EXAMPLES.into_iter().chain(egress.config.refused.iter().copied());
    addresses.map(|address| (address, 80).into()).collect()
}

fn expected(parts: &Parts, private: Vec<SocketAddr>) -> Expected {
    let (hidden, fixed) = masks(parts.host.users, parts.host.has_cgroups);
    let limits = [
        ("CORE", 0),
        ("NOFILE", MAX_OPEN_FILES),
        ("MEMLOCK", MAX_LOCKED_BYTES),
        ("NICE", 0),
        ("RTPRIO", 0),
    ];
    let socket = match &parts.client.found.address {
        Address::Unix(path) => Some(path.to_string_lossy().into_owned()),
        _ => None,
    };
    Expected {
        identity: Some((WORKLOAD_ID, WORKLOAD_ID)),
        unreachable: socket.into_iter().collect(),
        hidden,
        fixed,
        limits: limits.map(|(name, most)| (name.to_owned(), most)).to_vec(),
        quota: false,
        private,
        // By them the runner tells what was killed for memory.
        cgroups_shown: true,
        // Containers have no `/proc` that hides the processes of others.
        runner_shown: true,
    }
}

/// What `doctor` calls missing or weaker, and what the machine did not ask for.
fn without(parts: &Parts, spec: &MachineSpec) -> Vec<(Control, String)> {
    let mut without: Vec<(Control, String)> =
        parts.host.shortcomings.iter().map(|lack| (lack.control, lack.reason.clone())).collect();
    for control in [Control::Landlock, Control::Seccomp, Control::NetworkEgress] {
        if parts.lacks(control) {
            without.push((control, "Docker's kernel does not have it".to_owned()));
        }
    }
    let user = "containers are made without a user namespace of their own".to_owned();
    without.push((Control::UserNamespace, user));
    without.push((Control::IdMappedMounts, "containers have no mapped mounts".to_owned()));
    let quota = match spec.limits.disk_bytes {
        Some(_) => "Docker's volumes have no quota, which is accepted",
        None => "no quota was asked for",
    };
    without.push((Control::DiskQuota, quota.to_owned()));
    without
}
