//! The request that makes a container: every hardening that the engine has, and no host path.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount, MountType, MountVolumeOptions, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use sandbank_engine::{MachineSpec, NetworkMode, kernel_files};
use sandbank_protocol::{WORKSPACE, WORKSPACE_ALIASES};

use super::config::{self, Fences};
use super::temporary;
use crate::controls::Users;
use crate::egress::Egress;
use crate::limits::{MAX_LOCKED_BYTES, OWN_KERNEL_TASKS, OWN_KERNEL_TASKS_PER_PROCESS};
use crate::naming;

/// Where the runner's volume is.
pub(crate) const RUNNER_DIRECTORY: &str = "/.sandbank";
pub(crate) const RUNNER_FILE: &str = "runner";

/// What the runner needs to set the machine up and to be somebody else than its commands. It gives
/// up CHOWN, NET_ADMIN and SETPCAP before it takes its first request.
const CAPABILITIES: [&str; 5] = ["CHOWN", "KILL", "SETGID", "SETPCAP", "SETUID"];
const NETWORK_CAPABILITY: &str = "NET_ADMIN";

/// Older engines take IPv6 from the loopback device as well, and programs that listen on `::1` fail.
pub(crate) const LOOPBACK_V6: (&str, &str) = ("net.ipv6.conf.lo.disable_ipv6", "0");

/// When the host runs out of memory, machines go before the host's own services.
const OOM_SCORE_ADJUSTMENT: i64 = 300;

/// The kernel's own.
const CPU_PERIOD_US: i64 = 100_000;

/// Beside the native engine's: what Docker covers or fixes by itself.
const HIDDEN_TOO: [&str; 2] = ["/proc/latency_stats", "/sys/devices/virtual/powercap"];

/// Where cgroups are mounted: one hierarchy, or below it one for each controller, and those with a
/// name, which the host's init has. Docker leaves them writable where it maps users. Places that are
/// not there are passed over.
const CGROUPS: &str = "/sys/fs/cgroup";
const HIERARCHIES: [&str; 19] = [
    "blkio",
    "cpu",
    "cpu,cpuacct",
    "cpuacct",
    "cpuset",
    "devices",
    "elogind",
    "freezer",
    "hugetlb",
    "memory",
    "misc",
    "net_cls",
    "net_cls,net_prio",
    "net_prio",
    "openrc",
    "perf_event",
    "pids",
    "rdma",
    "systemd",
];

/// The runner does not end in order, so there is nothing to wait for.
const STOP_SIGNAL: &str = "SIGKILL";

/// All that goes into a container.
pub(crate) struct Recipe<'a> {
    pub(crate) spec: &'a MachineSpec,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) image: &'a str,
    pub(crate) image_env: BTreeMap<String, String>,
    /// Volumes that the image declares, and in whose place there is nothing.
    pub(crate) declared: &'a [String],
    pub(crate) workspace: Workspace<'a>,
    pub(crate) runner_volume: &'a str,
    /// Of machines with network.
    pub(crate) network: &'a str,
    /// What its runner closes, and whom it asks for names.
    pub(crate) egress: Option<Egress>,
    pub(crate) runtime: Option<&'a str>,
    pub(crate) cgroup_parent: Option<&'a str>,
    /// Of one process.
    pub(crate) open_files: u64,
    /// Whether there is a `::1`.
    pub(crate) loopback_v6: bool,
    /// Whether it has cgroups of its own.
    pub(crate) has_cgroups: bool,
    /// Whether it has a kernel of its own.
    pub(crate) own_kernel: bool,
    pub(crate) users: Users,
    pub(crate) fences: Fences<'a>,
}

/// The volume of the workspace; it is made when it is not there.
pub(crate) struct Workspace<'a> {
    pub(crate) volume: &'a str,
    pub(crate) labels: HashMap<String, String>,
}

pub(crate) fn body(recipe: Recipe<'_>) -> ContainerCreateBody {
    let spec = recipe.spec;
    let egress = recipe.egress.as_ref().map(|egress| egress.config.clone());
    let egress = egress.filter(|_| recipe.fences.egress);
    let command =
        config::arguments(recipe.image_env.clone(), egress, recipe.has_cgroups, recipe.fences);
    ContainerCreateBody {
        hostname: Some(spec.id.to_string()),
        image: Some(recipe.image.to_owned()),
        user: Some("0:0".to_owned()),
        working_dir: Some("/".to_owned()),
        entrypoint: Some(vec![format!("{RUNNER_DIRECTORY}/{RUNNER_FILE}")]),
        cmd: Some(command),
        labels: Some(recipe.labels.clone()),
        attach_stdin: Some(false),
        attach_stdout: Some(false),
        attach_stderr: Some(false),
        open_stdin: Some(true),
        stdin_once: Some(false),
        tty: Some(false),
        // The image's own check would be a command that nobody asked for.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        stop_signal: Some(STOP_SIGNAL.to_owned()),
        host_config: Some(host_config(&recipe)),
        ..ContainerCreateBody::default()
    }
}

fn host_config(recipe: &Recipe<'_>) -> HostConfig {
    let (spec, limits) = (recipe.spec, &recipe.spec.limits);
    let online = spec.network == NetworkMode::Default;
    let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
    let (hidden, fixed) = masks(recipe.users, recipe.has_cgroups);
    let capabilities = CAPABILITIES.into_iter().chain(online.then_some(NETWORK_CAPABILITY));
    HostConfig {
        memory: Some(memory),
        // The same: no swap.
        memory_swap: Some(memory),
        // As a share of time: of whole processors Docker refuses more than there are.
        cpu_period: Some(CPU_PERIOD_US),
        cpu_quota: Some(i64::from(limits.cpu_millis) * CPU_PERIOD_US / 1000),
        pids_limit: Some(tasks(limits.pids, recipe.own_kernel)),
        sysctls: recipe.loopback_v6.then(|| [LOOPBACK_V6].map(owned).into()),
        oom_score_adj: Some(OOM_SCORE_ADJUSTMENT),
        ulimits: Some(ulimits(recipe.open_files)),
        cgroup_parent: recipe.cgroup_parent.map(str::to_owned),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        ipc_mode: Some("private".to_owned()),
        init: Some(false),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(capabilities.map(str::to_owned).collect()),
        security_opt: Some(vec![
            "no-new-privileges:true".to_owned(),
            format!("seccomp={}", sandbank_seccomp::docker_profile(online)),
        ]),
        masked_paths: Some(hidden),
        readonly_paths: Some(fixed),
        mounts: Some(mounts(recipe)),
        tmpfs: Some(temporary::mounts(limits)),
        network_mode: Some(if online { recipe.network } else { "none" }.to_owned()),
        dns: resolvers(recipe.egress.as_ref()),
        dns_search: Some(vec![".".to_owned()]),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        auto_remove: Some(false),
        runtime: recipe.runtime.map(str::to_owned),
        ..HostConfig::default()
    }
}

/// What a machine may have on the host. A kernel of its own is there many threads, which are more
/// the more processes it has.
fn tasks(processes: u32, own_kernel: bool) -> i64 {
    let processes = i64::from(processes);
    match own_kernel {
        true => OWN_KERNEL_TASKS + OWN_KERNEL_TASKS_PER_PROCESS * processes,
        false => processes,
    }
}

/// Without a network there is nobody to ask, and the host's resolver is nobody's business.
fn resolvers(egress: Option<&Egress>) -> Option<Vec<String>> {
    match egress {
        None => Some(vec!["127.0.0.1".to_owned()]),
        Some(egress) if egress.dns.is_empty() => None,
        Some(egress) => Some(egress.dns.iter().map(ToString::to_string).collect()),
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Kernel files that are covered, and others that are read-only.
pub(crate) fn masks(users: Users, has_cgroups: bool) -> (Vec<String>, Vec<String>) {
    let (mut hidden, mut fixed) = kernel_files::masks();
    hidden.extend(HIDDEN_TOO.map(str::to_owned));
    if !has_cgroups {
        // Those that it would show are others'.
        hidden.push(CGROUPS.to_owned());
    }
    hidden.sort();
    hidden.dedup();
    // All of it is mounted read-only already. The devices' directory is not.
    fixed.retain(|path| path != "/sys");
    fixed.push("/dev".to_owned());
    if users == Users::Remapped {
        fixed.push(CGROUPS.to_owned());
        fixed.extend(HIERARCHIES.map(|name| format!("{CGROUPS}/{name}")));
    }
    (hidden, fixed)
}

/// Not of processes: without a user namespace all machines, and somebody on the host, have the
/// same user, and this limit is the user's. The cgroup has the machine's.
fn ulimits(open_files: u64) -> Vec<ResourcesUlimits> {
    let limit = |name: &str, most: u64| {
        let most = i64::try_from(most).ok();
        ResourcesUlimits { name: Some(name.to_owned()), soft: most, hard: most }
    };
    vec![
        limit("core", 0),
        limit("nofile", open_files),
        limit("memlock", MAX_LOCKED_BYTES),
        limit("nice", 0),
        limit("rtprio", 0),
    ]
}

fn mounts(recipe: &Recipe<'_>) -> Vec<Mount> {
    let volume = |source: &str, target: &str, read_only, labels: HashMap<String, String>| Mount {
        typ: Some(MountType::VOLUME),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(true),
            labels: Some(labels),
            ..MountVolumeOptions::default()
        }),
        ..Mount::default()
    };
    let workspace = &recipe.workspace;
    let runner = HashMap::from([(naming::RUNNER.to_owned(), String::new())]);
    let names = [WORKSPACE].into_iter().chain(WORKSPACE_ALIASES);
    let workspaces =
        names.map(|target| volume(workspace.volume, target, false, workspace.labels.clone()));
    let runner = volume(recipe.runner_volume, RUNNER_DIRECTORY, true, runner);
    workspaces.chain([runner]).chain(temporary::covers(recipe.declared)).collect()
}
