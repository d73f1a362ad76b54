//! The report for `doctor`: a machine is made and looked at, then destroyed.

use std::sync::Arc;
use std::time::Instant;

use sandbank_engine::{Control, ControlReport, EngineError, ImageName, MachineSpec, Standing};

use super::kernel::landlock_version;
use super::posture::Posture;
use super::{Parts, QUOTA_FIX};
use crate::lifecycle::{blocking, create, destroy};
use crate::limits::{CONTROLS_FRESH_FOR, KERNEL_POLL};

/// The last report and when it was made. Held while one is being made, so that many callers cost
/// one machine.
pub(in crate::lifecycle) type Cache = tokio::sync::Mutex<Option<(Instant, Vec<ControlReport>)>>;

pub(in crate::lifecycle) async fn report(parts: &Arc<Parts>) -> Vec<ControlReport> {
    let mut cache = parts.report.lock().await;
    if let Some((made, report)) = &*cache
        && made.elapsed() < CONTROLS_FRESH_FOR
    {
        return report.clone();
    }
    let seen = look(parts).await;
    let report = Control::ALL.into_iter().map(|control| judge(parts, control, &seen)).collect();
    *cache = Some((Instant::now(), report));
    cache.as_ref().map(|(_, report)| report.clone()).unwrap_or_default()
}

/// Makes a machine, waits for its runner to confine itself, looks, and destroys it; in a task of
/// its own, because nobody else sees the machine that a caller who leaves would leave behind.
async fn look(parts: &Arc<Parts>) -> Result<Posture, EngineError> {
    let parts = Arc::clone(parts);
    let task = tokio::spawn(async move { look_at_one(&parts).await });
    let failed = |error| EngineError::Internal(format!("looking at a machine failed: {error}"));
    task.await.map_err(failed)?
}

async fn look_at_one(parts: &Arc<Parts>) -> Result<Posture, EngineError> {
    let spec = MachineSpec::probe(ImageName::host());
    parts.table.hide(&spec.id);
    let machine = create::create(parts, &spec).await;
    let seen = match &machine {
        Ok(machine) => confined(machine.pid.unwrap_or_default()).await,
        Err(_) => Err(EngineError::NotFound(spec.id.clone())),
    };
    if let Err(error) = destroy::destroy(parts, &spec.id).await {
        tracing::warn!(%error, "the machine that was made to be looked at stays");
    }
    machine.and(seen)
}

async fn confined(pid: i32) -> Result<Posture, EngineError> {
    let deadline = tokio::time::Instant::now() + crate::limits::STATUS_DEADLINE;
    loop {
        let look = move || Posture::of(pid).map_err(EngineError::io("look at a machine"));
        let posture = blocking(look).await?;
        if posture.seccomp_filter || tokio::time::Instant::now() > deadline {
            return Ok(posture);
        }
        tokio::time::sleep(KERNEL_POLL).await;
    }
}

fn judge(parts: &Parts, control: Control, seen: &Result<Posture, EngineError>) -> ControlReport {
    if let Some(lack) = parts.shortcomings.iter().find(|lack| lack.control == control) {
        let (detail, fix) = (lack.reason.clone(), Some(lack.fix.clone()));
        return ControlReport { control, standing: Standing::Missing, detail, fix };
    }
    let (standing, detail, fix) = match (configured(parts, control), seen) {
        (Some(verdict), _) => verdict,
        (None, Ok(posture)) => measured(parts, control, posture),
        (None, Err(error)) => (
            Standing::Missing,
            format!("no machine could be made to look at: {error}"),
            Some("start the daemon as root on Linux 5.15 or later".to_owned()),
        ),
    };
    ControlReport { control, standing, detail, fix }
}

type Verdict = (Standing, String, Option<String>);

fn in_force(detail: impl Into<String>) -> Verdict {
    (Standing::InForce, detail.into(), None)
}

fn missing(detail: impl Into<String>, fix: &str) -> Verdict {
    (Standing::Missing, detail.into(), Some(fix.to_owned()))
}

fn weaker(detail: &str, fix: &str) -> Verdict {
    (Standing::Weaker, detail.to_owned(), Some(fix.to_owned()))
}

/// What follows from configuration and host, not from a machine.
fn configured(parts: &Parts, control: Control) -> Option<Verdict> {
    let verdict = match control {
        Control::Landlock => match landlock_version() {
            Ok(version) => in_force(format!("version {version}, required by every runner")),
            Err(error) => missing(error.to_string(), "use a kernel with Landlock"),
        },
        Control::MemoryLimit | Control::CpuLimit | Control::PidsLimit => {
            in_force(parts.cgroups.describe())
        }
        Control::DiskQuota if parts.storage.enforces_quota() => {
            in_force(format!("enforced by {}", parts.storage.kind()))
        }
        Control::DiskQuota => {
            missing(format!("storage {} enforces no quota", parts.storage.kind()), QUOTA_FIX)
        }
        Control::NetworkEgress => match parts.egress() {
            Ok(()) => in_force("public addresses only, by packet filter"),
            Err(reason) if parts.rootless => missing(reason, "run the daemon as root"),
            Err(reason) => missing(reason, "install nftables, or use network none"),
        },
        Control::SurvivesDaemon if !parts.cgroups.separate() => weaker(
            "machines are in the daemon's own cgroup: who stops that, stops them",
            "run the daemon as root, or delegate a cgroup to it",
        ),
        Control::SurvivesDaemon => {
            in_force("machines have sessions and cgroups of their own and records on disk")
        }
        _ => return None,
    };
    Some(verdict)
}

/// What a living machine shows.
fn measured(parts: &Parts, control: Control, seen: &Posture) -> Verdict {
    const BUG: &str = "this is a bug of the engine: please report it";
    let yes_or = |holds: bool, yes: &str, no: String| {
        if holds { in_force(yes) } else { missing(no, BUG) }
    };
    match control {
        Control::Namespaces => yes_or(
            seen.shared_namespaces.is_empty(),
            "cgroup, ipc, mount, network, pid, user and uts are its own",
            format!("shared with the host: {}", seen.shared_namespaces.join(", ")),
        ),
        Control::UserNamespace if parts.rootless => weaker(
            "it has its own, in which the only user is the one who runs the daemon",
            "run the daemon as root, so that every sandbox has ids of its own",
        ),
        Control::UserNamespace | Control::SeparateRunnerIdentity => yes_or(
            seen.runs_as_own_root(),
            "root inside is nobody outside, and commands are neither",
            format!("it runs as user {} of the host", seen.uid),
        ),
        Control::IdMappedMounts if parts.rootless => weaker(
            "files of sandboxes belong to the user who runs the daemon",
            "run the daemon as root",
        ),
        Control::IdMappedMounts => id_mapping(seen),
        Control::ReadOnlyRoot => {
            yes_or(seen.is_read_only("/"), "the root is read-only", "it is writable".into())
        }
        Control::MaskedKernelFiles => yes_or(
            seen.mount("/proc/keys").is_some()
                && seen.is_read_only("/proc/sys")
                && seen.is_read_only("/sys"),
            "/proc and /sys are masked and read-only",
            "/proc/keys, /proc/sys or /sys is as on the host".into(),
        ),
        Control::NoCapabilities => yes_or(
            seen.bounding_set == 0,
            "the bounding set is empty: no program can have any",
            format!("the bounding set is {:x}", seen.bounding_set),
        ),
        Control::NoNewPrivileges => {
            yes_or(seen.no_new_privileges, "set before the runner starts", "not set".into())
        }
        Control::Seccomp => {
            yes_or(seen.seccomp_filter, "the runner filters itself", "no filter found".into())
        }
        Control::ResourceLimits => {
            yes_or(seen.core_limit == 0, "no core files, bounded files", "not set".into())
        }
        Control::NetworkNone => yes_or(
            !seen.shared_namespaces.contains(&"net"),
            "loopback only",
            "it has the host's network".into(),
        ),
        _ => missing(format!("{} is not measured", parts.cgroups.describe()), BUG),
    }
}

fn id_mapping(seen: &Posture) -> Verdict {
    if seen.ids_are_mapped() {
        return in_force("files on disk keep canonical owners");
    }
    (
        Standing::Weaker,
        "the file system of the data directory cannot map ids: each workspace is owned by one \
         machine's range of ids, and files of images show as nobody's"
            .to_owned(),
        Some("keep the data directory on ext4, xfs or btrfs, on Linux 5.19 or later".to_owned()),
    )
}
