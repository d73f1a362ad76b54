//! How a living machine is meant to be confined, and what of that shows on the host: the engine's
//! half of a test of containment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, OnceLock};

use sandbank_engine::{
    Confinement, Control, EngineError, Expected, HostFinding, Limits, MachineSpec, NetworkMode,
    SandboxId, kernel_files, sha256_hex,
};
use sandbank_protocol::{CgroupVersion, egress};
use sandbank_runner_binary::RUNNER;

use super::Parts;
use super::posture::Posture;
use crate::lifecycle::blocking;
use crate::limits::{MAX_LOCKED_BYTES, MAX_OPEN_FILES};
use crate::machine::{Record, WORKLOAD_ID};

/// A file of the host that no machine may find.
const CANARY: &str = "canary";

pub(in crate::lifecycle) async fn confinement(
    parts: &Arc<Parts>,
    id: &SandboxId,
) -> Result<Confinement, EngineError> {
    let entry = parts.table.find(id)?;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    let record = entry.record().ok_or_else(|| EngineError::Dead(id.clone()))?;
    let parts = Arc::clone(parts);
    blocking(move || look(&parts, record)).await
}

/// What a test of containment holds for: everything that machines are made with and of.
pub(in crate::lifecycle) fn key(parts: &Parts) -> String {
    let system = rustix::system::uname();
    let omitted = Control::ALL.into_iter().filter(|one| parts.settings.omitted.contains(*one));
    [
        format!("sandbank {}", env!("CARGO_PKG_VERSION")),
        format!("runner {}", runner_digest()),
        format!("kernel {}", system.release().to_string_lossy()),
        format!("build {}", system.version().to_string_lossy()),
        format!("boot {}", parts.boot),
        format!("root {}", !parts.rootless),
        parts.cgroups.describe(),
        format!("storage {}", parts.storage.kind()),
        format!("egress {}", parts.egress().is_ok()),
        format!("weaker {}", names(parts.settings.allow_weaker.iter().copied())),
        format!("omitted {}", names(omitted)),
    ]
    .join("; ")
}

/// Of the runner that machines are started with.
pub(in crate::lifecycle) fn runner_digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| sha256_hex(RUNNER))
}

fn names(controls: impl Iterator<Item = Control>) -> String {
    controls.map(Control::name).collect::<Vec<_>>().join(",")
}

/// The limits to set: those that were asked for, but for what is left out on purpose.
pub(in crate::lifecycle) fn limits(parts: &Parts, spec: &MachineSpec) -> Limits {
    const MANY: u32 = 1_000_000;
    let omitted = parts.settings.omitted.of(&spec.image);
    let mut limits = spec.limits.clone();
    if omitted.contains(Control::MemoryLimit) {
        limits.memory_bytes = 1 << 50;
    }
    if omitted.contains(Control::CpuLimit) {
        limits.cpu_millis = MANY;
    }
    if omitted.contains(Control::PidsLimit) {
        limits.pids = MANY;
    }
    limits
}

fn look(parts: &Parts, record: Record) -> Result<Confinement, EngineError> {
    let examine = "look at a machine";
    let pid = record.process.as_ref().map_or(0, |process| process.pid);
    let posture = Posture::of(pid).map_err(EngineError::io(examine))?;
    let mut seen = vec![namespaces(&posture), identity(&posture), ownership(&posture)];
    seen.push(program(pid, &record.runner_digest).map_err(EngineError::io(examine))?);
    let spec = record.spec;
    seen.extend(cgroups(parts, &spec, pid)?);
    Ok(Confinement {
        expected: expected(parts, &spec).map_err(EngineError::io(examine))?,
        without: without(parts, &spec, &posture),
        seen,
        spec,
    })
}

fn finding(probe: &'static str, held: bool, evidence: impl Into<String>) -> HostFinding {
    HostFinding { probe, held, evidence: evidence.into() }
}

fn namespaces(posture: &Posture) -> HostFinding {
    let shared = posture.shared_namespaces.join(", ");
    let evidence = if shared.is_empty() { "none is shared".to_owned() } else { shared.clone() };
    finding("host_namespaces", shared.is_empty(), evidence)
}

fn identity(posture: &Posture) -> HostFinding {
    let evidence = format!("its root is user {} of the host", posture.uid);
    finding("host_identity", posture.runs_as_own_root(), evidence)
}

fn ownership(posture: &Posture) -> HostFinding {
    let mapped = posture.ids_are_mapped();
    let evidence = format!(
        "the root is user {}'s and the workspace user {}'s, {} mapping",
        posture.root_owner,
        posture.workspace_owner,
        if mapped { "by" } else { "not by" }
    );
    finding("host_ownership", mapped, evidence)
}

/// The limits in force, of cgroups that the machine is really in.
fn cgroups(parts: &Parts, spec: &MachineSpec, pid: i32) -> Result<[HostFinding; 3], EngineError> {
    let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .map_err(EngineError::io("read a machine's cgroups"))?;
    let enforced = parts.cgroups.enforced(&spec.id)?;
    let version = parts.cgroups.version();
    let judge = |probe, controller: &str, asked: u64, found: Option<u64>| {
        if !is_member(&memberships, version, controller, spec.id.as_str()) {
            return finding(probe, false, format!("it is not in its {controller} cgroup"));
        }
        let shown = found.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        finding(probe, found == Some(asked), format!("{shown} where {asked} was asked for"))
    };
    let asked = &spec.limits;
    // The kernel counts memory in pages.
    // SAFETY: sysconf takes a number and gives one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let memory = asked.memory_bytes / page * page;
    Ok([
        judge("host_memory_limit", "memory", memory, enforced.memory_bytes),
        judge("host_cpu_limit", "cpu", u64::from(asked.cpu_millis), enforced.cpu_millis),
        judge("host_pids_limit", "pids", u64::from(asked.pids), enforced.pids),
    ])
}

/// In `/proc/<pid>/cgroup`, v2 has one line without a controller's name, also where the
/// controllers are v1's.
fn is_member(memberships: &str, version: CgroupVersion, controller: &str, id: &str) -> bool {
    let mut lines = memberships.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    lines.any(|(controllers, path)| {
        let matches = match version {
            CgroupVersion::V1 => controllers.split(',').any(|name| name == controller),
            CgroupVersion::V2 => controllers.is_empty(),
        };
        matches && path.split('/').any(|part| part == id)
    })
}

/// What the first process runs is sealed, and what was built in. A machine of an earlier version
/// has that version's, which its record tells.
fn program(pid: i32, recorded: &str) -> io::Result<HostFinding> {
    let probe = "host_runner_program";
    let mut file = File::open(format!("/proc/{pid}/exe"))?;
    let needed = rustix::fs::SealFlags::SEAL
        | rustix::fs::SealFlags::SHRINK
        | rustix::fs::SealFlags::GROW
        | rustix::fs::SealFlags::WRITE;
    let seals = rustix::fs::fcntl_get_seals(&file).unwrap_or(rustix::fs::SealFlags::empty());
    if !seals.contains(needed) {
        return Ok(finding(probe, false, format!("it is not sealed: {seals:?}")));
    }
    let mut program = Vec::with_capacity(RUNNER.len());
    file.read_to_end(&mut program)?;
    Ok(if program == RUNNER {
        finding(probe, true, "sealed, and the one that was built in")
    } else if sha256_hex(&program) == recorded {
        finding(probe, true, "sealed, and the one that an earlier daemon started")
    } else {
        finding(probe, false, "sealed, but no daemon started it")
    })
}

fn expected(parts: &Parts, spec: &MachineSpec) -> io::Result<Expected> {
    let (hidden, fixed) = kernel_files::masks();
    let data = &parts.settings.data_dir;
    let limits = [
        ("CORE", 0),
        ("NOFILE", MAX_OPEN_FILES),
        ("NPROC", u64::from(spec.limits.pids)),
        ("MEMLOCK", MAX_LOCKED_BYTES),
        ("NICE", 0),
        ("RTPRIO", 0),
    ];
    let places = [data.clone(), data.join("machines"), data.join("token"), place_canary(parts)?];
    let with_network = spec.network == NetworkMode::Default;
    // The port does not matter.
    let private = egress::EXAMPLES.map(|address| (address, 80).into());
    Ok(Expected {
        identity: Some((WORKLOAD_ID, WORKLOAD_ID)),
        unreachable: places.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        hidden,
        fixed,
        limits: limits.map(|(name, most)| (name.to_owned(), most)).to_vec(),
        quota: parts.quota(spec).is_some(),
        private: if with_network { private.to_vec() } else { Vec::new() },
        cgroups_shown: false,
        runner_shown: false,
    })
}

/// Readable by everybody on the host, as far as the directory is.
fn place_canary(parts: &Parts) -> io::Result<std::path::PathBuf> {
    let path = parts.settings.data_dir.join(CANARY);
    let flags = libc::O_NOFOLLOW;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o644)
        .custom_flags(flags)
        .open(&path)?;
    file.write_all(b"No sandbox may read this file.\n")?;
    Ok(path)
}

/// Nobody is attacked any more.
pub(in crate::lifecycle) fn remove_canary(parts: &Parts) {
    let _ = std::fs::remove_file(parts.settings.data_dir.join(CANARY));
}

/// What `doctor` calls missing or weaker, and what the machine did not ask for.
fn without(parts: &Parts, spec: &MachineSpec, posture: &Posture) -> Vec<(Control, String)> {
    let mut without: Vec<(Control, String)> =
        parts.shortcomings.iter().map(|lack| (lack.control, lack.reason.clone())).collect();
    if parts.rootless {
        let reason = "without root, machines have the daemon's user".to_owned();
        without.push((Control::UserNamespace, reason.clone()));
        without.push((Control::IdMappedMounts, reason));
    } else if posture.owns_workspace() && !posture.ids_are_mapped() {
        let reason = "the data directory's file system cannot map ids".to_owned();
        without.push((Control::IdMappedMounts, reason));
    }
    if parts.quota(spec).is_none() {
        without.push((Control::DiskQuota, "no quota is enforced for this machine".to_owned()));
    }
    without
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_is_read_as_the_kernel_writes_it() {
        let v1 = "12:pids:/sandbank/i/sb_a\n5:cpu,cpuacct:/sandbank/i/sb_a\n3:memory:/\n0::/\n";
        let in_v1 = |controller, id| is_member(v1, CgroupVersion::V1, controller, id);
        assert!(in_v1("pids", "sb_a") && in_v1("cpu", "sb_a"));
        assert!(!in_v1("memory", "sb_a") && !in_v1("pids", "sb_"));
        let v2 = "5:cpu:/\n0::/sandbank/i/sb_a\n";
        assert!(is_member(v2, CgroupVersion::V2, "memory", "sb_a"));
        assert!(!is_member(v2, CgroupVersion::V1, "memory", "sb_a"), "v2 limits nothing here");
        assert!(!is_member(v1, CgroupVersion::V2, "pids", "sb_a"));
    }

    #[test]
    fn a_sealed_program_holds_only_where_a_daemon_started_it() {
        use std::os::fd::AsRawFd;
        use std::os::unix::process::CommandExt;
        let bytes = fs::read("/bin/sleep").unwrap();
        let sealed = sandbank_runner_binary::seal(&bytes).unwrap();
        let mut running =
            std::process::Command::new(format!("/proc/self/fd/{}", sealed.as_raw_fd()))
                .arg0("sleep")
                .arg("60")
                .spawn()
                .unwrap();
        let pid = running.id() as i32;
        let recorded = program(pid, &sha256_hex(&bytes)).unwrap();
        let found = [runner_digest(), ""].map(|other| program(pid, other).unwrap());
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(recorded.held, "{recorded:?}");
        for finding in found {
            assert!(!finding.held, "{finding:?}");
        }
    }
}
