//! The battery of attacks that a sandbox must withstand: which there are, what each proves, and
//! how their results travel.
//!
//! The attacks inside are carried out by the runner's own program, started as a command like any
//! other (`argv` is [`PROGRAM`], [`WORD`] and a [`BatteryPlan`] as JSON), so they meet exactly
//! what the workload meets, in any image. It prints one [`Finding`] per line. The probes of the
//! host's side are judged by the engine. Arguments of attacks are chosen so that the control that
//! is probed, and no other, gives the expected answer; and so that an attack that is not refused
//! changes nothing.

use serde::{Deserialize, Serialize};

/// The runner's own program, as a command finds it whatever its image holds.
pub const PROGRAM: &str = "/proc/self/exe";

/// The word that makes it attack.
pub const WORD: &str = "contain";

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A command in the sandbox.
    Inside,
    /// The engine.
    Host,
}

/// One attack, or one look from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    pub name: &'static str,
    /// The name of the control that it proves.
    pub control: &'static str,
    pub side: Side,
    pub attack: &'static str,
    /// What must come of it.
    pub refusal: &'static str,
    /// The same done legitimately, which must work; otherwise the probe proves nothing and fails.
    pub counterpart: &'static str,
}

macro_rules! probes {
    ($($side:ident $name:literal proves $control:literal: $attack:literal => $refusal:literal,
        but $counterpart:literal;)*) => {
        /// Every probe, in the order of its run.
        pub const PROBES: &[Probe] = &[$(Probe {
            name: $name, control: $control, side: Side::$side, attack: $attack, refusal: $refusal,
            counterpart: $counterpart,
        }),*];
    };
}

probes! {
    Inside "capability_sets" proves "no_capabilities":
        "look for a capability in any of the five sets" => "all five are empty",
        but "the five sets can be read";
    Inside "raw_socket" proves "no_capabilities":
        "open a raw internet socket" => "EPERM",
        but "a datagram socket opens";
    Inside "device_nodes" proves "no_capabilities":
        "make block and character devices; open the host's memory, disks, kmsg, kvm, fuse"
        => "EPERM for each node, and none of the devices is there",
        but "a pipe can be made, and /dev/null opens";
    Inside "no_new_privileges" proves "no_new_privileges":
        "ask whether exec may give privileges" => "it may not",
        but "the kernel answers";
    Inside "seccomp_filter" proves "seccomp":
        "ask for the mode of the system call filter" => "filter",
        but "a call newer than the filter says ENOSYS, so that libraries fall back";
    Inside "mount_calls" proves "seccomp":
        "mount, unmount, remount each read-only mount writable, pivot_root, chroot, the new calls"
        => "EPERM for each, and the mounts are as before",
        but "the mounts can be listed";
    Inside "namespace_calls" proves "seccomp":
        "unshare, setns, clone with each namespace flag, clone3"
        => "EPERM, and ENOSYS for clone3",
        but "an ordinary child can be cloned";
    Inside "kernel_calls" proves "seccomp":
        "io_uring, bpf, perf events, keys, userfaultfd, file handles, modules, kexec, swap, clocks"
        => "EPERM for each",
        but "getpid answers";
    Inside "socket_families" proves "seccomp":
        "open a socket of every family and type" => "EPERM for all but unix, inet, inet6 and routes",
        but "unix, inet and inet6 open";
    Inside "foreign_calls" proves "seccomp":
        "make a 32-bit and an x32 system call" => "the caller is killed",
        but "the same call of this architecture works";
    Inside "landlock_domain" proves "landlock":
        "count the landlock layers that can still be added" => "at least one is taken",
        but "a layer can be added";
    Inside "nested_user_namespace" proves "user_namespace":
        "read how many user namespaces may be made in this one" => "none",
        but "the limit can be read";
    Inside "workload_identity" proves "separate_runner_identity":
        "become root, in user and in group" => "EPERM, and no group beside its own",
        but "its own identity can be set again";
    Inside "first_process" proves "separate_runner_identity":
        "signal, trace, read and write the first process, take its descriptors"
        => "EPERM, and its files are not there",
        but "its own child can be signalled";
    Inside "runner_program" proves "separate_runner_identity":
        "open the runner's program for writing, truncate it, punch a hole, map it, change its mode"
        => "refused, by its seals if not before",
        but "it can be read";
    Inside "read_only_root" proves "read_only_root":
        "make a file in every system directory" => "EROFS for each",
        but "a file can be made in the workspace";
    Inside "kernel_files" proves "masked_kernel_files":
        "read kernel memory, keys, messages, addresses, firmware" => "covered, empty or not there",
        but "/proc/meminfo can be read";
    Inside "kernel_settings" proves "masked_kernel_files":
        "open sysctls, sysrq-trigger, uevent_helper and power for writing"
        => "refused, and the trees are read-only",
        but "a sysctl can be read";
    Inside "cgroup_files" proves "namespaces":
        "look for a cgroup file system, its release_agent and its limits"
        => "none is mounted, or its own alone, and read-only",
        but "the mounts can be listed";
    Inside "other_processes" proves "namespaces":
        "look for processes of anybody else" => "none is visible, or the first alone",
        but "it sees itself";
    Inside "leaked_descriptors" proves "namespaces":
        "look for open descriptors, and climb out of / and the working directory"
        => "three standard streams, and / has no parent",
        but "the workspace is the working directory";
    Inside "host_paths" proves "namespaces":
        "open files that the engine put on the host, its sockets, and known control sockets"
        => "not there, by any way through /proc",
        but "the workspace opens";
    Inside "resource_limits" proves "resource_limits":
        "look for limits above the engine's and raise one" => "none, and EPERM",
        but "a limit can be lowered";
    Inside "process_burst" proves "pids_limit":
        "start more processes than the limit" => "EAGAIN before that",
        but "some start";
    Inside "disk_fill" proves "disk_quota":
        "write twice the quota" => "EDQUOT or ENOSPC before that",
        but "something is written";
    Inside "loopback_only" proves "network_none":
        "look for links; reach private, metadata and public addresses" => "lo, and ENETUNREACH",
        but "a datagram over loopback arrives";
    Inside "private_addresses" proves "network_egress":
        "connect to private, link-local and metadata addresses" => "each is refused at once",
        but "a datagram over loopback arrives";
    Host "host_namespaces" proves "namespaces":
        "compare each namespace with the daemon's" => "all seven differ",
        but "the machine's namespaces can be read";
    Host "host_identity" proves "user_namespace":
        "look whom the machine's root is on the host" => "an id that nobody else has",
        but "its status can be read";
    Host "host_ownership" proves "id_mapped_mounts":
        "look who owns the root and the workspace on the host"
        => "ids of the machine's range, by mapping",
        but "both are there";
    Host "host_memory_limit" proves "memory_limit":
        "read the limit of the cgroup that the machine is in" => "what was asked for",
        but "the machine is a member of that cgroup";
    Host "host_cpu_limit" proves "cpu_limit":
        "read the limit of the cgroup that the machine is in" => "what was asked for",
        but "the machine is a member of that cgroup";
    Host "host_pids_limit" proves "pids_limit":
        "read the limit of the cgroup that the machine is in" => "what was asked for",
        but "the machine is a member of that cgroup";
    Host "host_runner_program" proves "separate_runner_identity":
        "compare the program that the first process runs with the one that it was started with"
        => "sealed, and the same bytes",
        but "it can be read";
}

impl Probe {
    pub fn named(name: &str) -> Option<&'static Self> {
        PROBES.iter().find(|probe| probe.name == name)
    }
}

/// What the battery is told. Holds no secret: the sandbox may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatteryPlan {
    /// User and group that commands are expected to be; not checked when absent.
    pub identity: Option<(u32, u32)>,
    /// Paths of the host that must not be there.
    pub unreachable: Vec<String>,
    /// Kernel files that must be covered.
    pub hidden: Vec<String>,
    /// Kernel files that must be read-only.
    pub fixed: Vec<String>,
    /// The most that each resource limit may be, by its name in `RLIMIT_…`.
    pub limits: Vec<(String, u64)>,
    /// Processes of the sandbox; the burst is tried only when present.
    pub burst: Option<u32>,
    /// Quota of the workspace; filling it is tried only when present.
    pub fill: Option<u64>,
    /// The sandbox is meant to have nothing but loopback.
    pub loopback_only: bool,
    /// Addresses with ports that must not answer; tried only where there is a network.
    pub private: Vec<std::net::SocketAddr>,
    /// The sandbox's own cgroups are meant to be seen, but not to be changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cgroups_shown: bool,
    /// The first process is meant to be seen, though not looked into.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub runner_shown: bool,
}

/// How one probe ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub probe: String,
    pub outcome: Outcome,
    /// What was seen, in a sentence.
    pub evidence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Held,
    Failed,
    /// The plan or the architecture leaves nothing to try; the evidence says why.
    NotTried,
}

impl Finding {
    pub fn new(probe: &str, outcome: Outcome, evidence: impl Into<String>) -> Self {
        Self { probe: probe.to_owned(), outcome, evidence: evidence.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_a_name_of_its_own() {
        let mut names: Vec<_> = PROBES.iter().map(|probe| probe.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROBES.len());
    }

    #[test]
    fn a_plan_survives_the_command_line() {
        let plan = BatteryPlan {
            identity: Some((1000, 1000)),
            limits: vec![("CORE".into(), 0)],
            private: vec!["169.254.169.254:80".parse().unwrap()],
            ..BatteryPlan::default()
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<BatteryPlan>(&text).unwrap(), plan);
    }
}
