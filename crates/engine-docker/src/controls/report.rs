//! The report for `doctor`: a machine is made and looked at, and another one tries its network; then
//! both are destroyed.

use std::sync::Arc;
use std::time::Instant;

use bollard::models::HostConfig;
use sandbank_engine::{
    Control, ControlReport, Engine, EngineError, MachineSpec, SandboxId, Standing,
};

use sandbank_protocol::containment::Outcome;

use super::QUOTA_FIX;
use super::attempt::{Attempt, attempt};
use super::cgroups::asked_cpu_millis;
use super::confinement::{inspect, process_of};
use super::process::Process;
use super::users::Users;
use crate::lifecycle::{DockerEngine, Parts, create_anyway};
use crate::limits::CONTROLS_FRESH_FOR;

/// The last report and when it was made. Held while one is being made, so that many callers cost
/// one machine.
pub(crate) type Cache = tokio::sync::Mutex<Option<(Instant, Vec<ControlReport>)>>;

/// What was seen of a machine.
struct Seen {
    config: HostConfig,
    /// What came of the network of another one.
    network: Result<Attempt, EngineError>,
    /// None where it is out of sight.
    process: Option<Process>,
}

pub(crate) async fn report(parts: &Arc<Parts>) -> Vec<ControlReport> {
    let mut cache = parts.report.lock().await;
    if let Some((made, report)) = &*cache
        && made.elapsed() < CONTROLS_FRESH_FOR
    {
        return report.clone();
    }
    let seen = look(parts).await;
    let report: Vec<_> =
        Control::ALL.into_iter().map(|control| judge(parts, control, &seen)).collect();
    *cache = Some((Instant::now(), report.clone()));
    report
}

/// Makes a machine, whose runner has confined itself by then, looks, and destroys it.
async fn look(parts: &Arc<Parts>) -> Result<Seen, EngineError> {
    let engine = DockerEngine::over(parts);
    let images = engine.images_to_test().await?;
    let image = images.first().ok_or_else(|| {
        EngineError::Unavailable("Docker has no image to make a sandbox of".to_owned())
    })?;
    let spec = MachineSpec::probe(image.name.clone());
    let _hidden = parts.table.hide(&spec.id);
    let seen = match create_anyway(parts, &spec).await {
        Ok(_) => {
            let (seen, network) =
                tokio::join!(examine(parts, &spec.id), attempt(parts, &image.name));
            seen.map(|(config, process)| Seen { config, network, process })
        }
        Err(error) => Err(error),
    };
    if let Err(error) = engine.destroy(&spec.id).await {
        tracing::warn!(%error, "the machine that was made to be looked at stays");
    }
    seen
}

async fn examine(
    parts: &Arc<Parts>,
    id: &SandboxId,
) -> Result<(HostConfig, Option<Process>), EngineError> {
    let found = inspect(parts, id).await?;
    let process = process_of(parts, &found).await?;
    Ok((found.host_config.unwrap_or_default(), process))
}

type Verdict = (Standing, String, Option<String>);

fn in_force(detail: impl Into<String>) -> Verdict {
    (Standing::InForce, detail.into(), None)
}

fn weaker(detail: impl Into<String>, fix: &str) -> Verdict {
    (Standing::Weaker, detail.into(), Some(fix.to_owned()))
}

fn missing(detail: impl Into<String>, fix: &str) -> Verdict {
    (Standing::Missing, detail.into(), Some(fix.to_owned()))
}

fn judge(parts: &Parts, control: Control, seen: &Result<Seen, EngineError>) -> ControlReport {
    if let Some(lack) = parts.host.shortcomings.iter().find(|lack| lack.control == control) {
        let (detail, fix) = (lack.reason.clone(), Some(lack.fix.clone()));
        return ControlReport { control, standing: Standing::Missing, detail, fix };
    }
    let (standing, detail, fix) = match (described(parts, control), seen) {
        (Some(verdict), _) => verdict,
        (None, Ok(seen)) => measured(parts, control, seen),
        (None, Err(error)) => missing(
            format!("no machine could be made to look at: {error}"),
            "make Docker work and give it an image: `sandbank image import`, or `docker build`",
        ),
    };
    ControlReport { control, standing, detail, fix }
}

const NATIVE: &str = "use the native engine, where every sandbox has users of its own";

/// What follows from the engine, not from a machine.
fn described(parts: &Parts, control: Control) -> Option<Verdict> {
    Some(match control {
        Control::UserNamespace => match parts.host.users.how() {
            Some(how) => weaker(format!("{how}; sandboxes share it"), NATIVE),
            None => weaker("commands are no root, but root inside is root of the host", NATIVE),
        },
        Control::IdMappedMounts => weaker("volumes are not mapped", NATIVE),
        Control::DiskQuota => missing("Docker's volumes have no quota", QUOTA_FIX),
        Control::SurvivesDaemon if parts.host.live_restore => {
            in_force("containers are Docker's, and outlive its restart, too")
        }
        Control::SurvivesDaemon => {
            in_force("containers are Docker's; they end when Docker itself is stopped")
        }
        _ => return None,
    })
}

/// What was tried from inside.
fn tried(parts: &Parts, network: &Result<Attempt, EngineError>) -> Verdict {
    const KERNEL: &str = "use a kernel with nf_tables on Docker's host";
    const HOST: &str = "run Sandbank on Docker's host, or say its addresses: \
                        docker.host_addresses (SANDBANK_DOCKER_HOST_ADDRESSES)";
    const ROOTLESS: &str = "a rootless Docker has a network of its own: say the host's addresses: \
                            docker.host_addresses (SANDBANK_DOCKER_HOST_ADDRESSES)";
    if parts.lacks(Control::NetworkEgress) {
        return missing("the runner cannot close the network: it is open, as allowed", KERNEL);
    }
    match network {
        Err(EngineError::ControlUnavailable { reason, .. }) => {
            missing(reason.clone(), "mend that, or create sandboxes without network")
        }
        Err(error) => missing(format!("not tried: {error}"), "make that work, and try again"),
        Ok(Attempt { finding, egress }) => match finding.outcome {
            Outcome::Held if egress.knows_host => in_force(format!(
                "tried: private addresses and the host's own, {}",
                finding.evidence
            )),
            Outcome::Held => {
                let resolvers = match egress.config.resolvers.is_empty() {
                    true => ", nor are private resolvers of it allowed",
                    false => "",
                };
                let detail = format!(
                    "tried: private addresses, {}; public ones of Docker's host are not known \
                     here, so they are not refused{resolvers}",
                    finding.evidence
                );
                weaker(detail, if parts.host.users == Users::Rootless { ROOTLESS } else { HOST })
            }
            _ => missing(format!("tried: {}", finding.evidence), KERNEL),
        },
    }
}

/// What a living machine shows.
fn measured(parts: &Parts, control: Control, seen: &Seen) -> Verdict {
    const BUG: &str = "this is a bug of the engine: please report it";
    let (config, process) = (&seen.config, seen.process.as_ref());
    let yes_or = |holds: bool, yes: &str, no: &str| {
        let sight = if process.is_none() { ", as Docker describes it" } else { "" };
        if holds { in_force(format!("{yes}{sight}")) } else { missing(no, BUG) }
    };
    let options = config.security_opt.iter().flatten();
    let has_option = |name: &str| options.clone().any(|option| option.starts_with(name));
    match control {
        Control::Namespaces => yes_or(
            process.is_none_or(|process| process.shared_namespaces().is_empty()),
            "cgroup, ipc, mount, network, pid and uts are its own",
            "some are shared with the host",
        ),
        Control::ReadOnlyRoot => {
            yes_or(config.readonly_rootfs == Some(true), "the root is read-only", "it is writable")
        }
        Control::MaskedKernelFiles => yes_or(
            config.masked_paths.iter().flatten().any(|path| path == "/proc/keys"),
            "/proc and /sys are masked and read-only",
            "/proc/keys is as on the host",
        ),
        Control::NoCapabilities => yes_or(
            process.is_none_or(|process| process.bounding_set() == Some(0)),
            "the runner empties the bounding set: no program can have any",
            "the bounding set is not empty",
        ),
        Control::NoNewPrivileges => yes_or(
            process.map_or(has_option("no-new-privileges"), Process::no_new_privileges),
            "set before the runner starts",
            "not set",
        ),
        Control::Seccomp => yes_or(
            process.map_or(has_option("seccomp="), Process::filters_calls),
            "Docker filters the runner, and the runner itself again",
            "no filter found",
        ),
        Control::Landlock if parts.lacks(Control::Landlock) => {
            missing("Docker's kernel does not have it", "use a kernel with landlock")
        }
        Control::Landlock => in_force("required by every runner"),
        Control::ResourceLimits => yes_or(
            config.ulimits.iter().flatten().any(|limit| limit.name.as_deref() == Some("core")),
            match parts.has(Control::PidsLimit) {
                true => "no core files, bounded files; processes by the cgroup",
                false => "no core files, bounded files",
            },
            "not set",
        ),
        Control::MemoryLimit | Control::CpuLimit | Control::PidsLimit => {
            let held = |limit: Option<i64>| limit.is_some_and(|limit| limit > 0);
            let set = match control {
                Control::MemoryLimit => held(config.memory),
                Control::CpuLimit => asked_cpu_millis(config).is_some(),
                _ => held(config.pids_limit),
            };
            yes_or(set, "by Docker's cgroups", "not set")
        }
        Control::NetworkNone => yes_or(
            config.network_mode.as_deref() == Some("none"),
            "loopback only",
            "it has a network",
        ),
        Control::NetworkEgress => tried(parts, &seen.network),
        Control::SeparateRunnerIdentity => in_force(
            "the runner is root of the container with three capabilities; commands are not",
        ),
        other => missing(format!("{} is not measured", other.name()), BUG),
    }
}
