//! What the engine says about itself, asked once at start.

use std::net::{IpAddr, Ipv4Addr};

use bollard::models::{SystemInfo, SystemInfoCgroupDriverEnum, SystemInfoCgroupVersionEnum};
use sandbank_engine::{Control, EngineError};

use super::Shortcoming;
use super::own_kernel::{self, has_own_kernel};
use super::users::Users;
use crate::connection::{Address, Client, SshTarget};
use crate::settings::DockerSettings;

pub(crate) struct Host {
    /// For people.
    pub(crate) version: String,
    /// All that confinement depends on.
    pub(crate) fingerprint: String,
    pub(crate) users: Users,
    /// Containers have cgroups of their own. Of those that have none, Docker's numbers are of
    /// whatever cgroup it was started in.
    pub(crate) has_cgroups: bool,
    /// Containers have a kernel of their own, so their processes are none of the host's.
    pub(crate) own_kernel: bool,
    /// Containers outlive the engine's restart.
    pub(crate) live_restore: bool,
    pub(crate) shortcomings: Vec<Shortcoming>,
    /// Addresses of its host that became known by the way. There may be more.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// Whom a rootless engine asks for names, on a network that it has for itself.
    pub(crate) resolvers: Vec<Ipv4Addr>,
}

impl Host {
    pub(crate) async fn examine(
        client: &Client,
        settings: &DockerSettings,
    ) -> Result<Self, EngineError> {
        let info = client.api().info().await.map_err(client.failed("describe itself"))?;
        if info.os_type.as_deref() != Some("linux") {
            let system = info.os_type.unwrap_or_default();
            return Err(EngineError::Unavailable(format!(
                "Docker at {} makes {system} containers; sandboxes need linux ones: switch it to them, \
                 or name another engine with SANDBANK_DOCKER_HOST",
                client.found.address
            )));
        }
        runs_ours(&client.machine, &client.found.address)?;
        let runtime = runtime(&info, settings)?;
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let server = text(&info.server_version);
        let cgroup = match info.cgroup_version {
            Some(SystemInfoCgroupVersionEnum::_2) => "cgroup v2",
            _ => "cgroup v1",
        };
        let kernel = text(&info.kernel_version);
        let options = info.security_options.clone().unwrap_or_default();
        let version = format!("{server} ({runtime}, {cgroup}, Linux {kernel})");
        let fingerprint = format!(
            "docker {} {server}; runtime {runtime}; {cgroup}; kernel {kernel}; driver {}; {}",
            text(&info.id),
            text(&info.driver),
            options.join(" ")
        );
        let users = Users::of(&options);
        Ok(Self {
            version,
            fingerprint,
            users,
            has_cgroups: has_cgroups(&info),
            own_kernel: has_own_kernel(&info, &runtime),
            live_restore: info.live_restore_enabled == Some(true),
            shortcomings: shortcomings(&info, &options, &runtime),
            addresses: addresses(client, &info).await,
            resolvers: users.resolvers(client).await,
        })
    }
}

/// The runner is this daemon's own, for the machine that it was built for.
fn runs_ours(machine: &str, address: &Address) -> Result<(), EngineError> {
    let ours = sandbank_image_archive::machine();
    if machine == ours {
        return Ok(());
    }
    Err(EngineError::Unavailable(format!(
        "Docker at {address} is on a linux/{machine} machine, and the runner of this sandbank is for \
         linux/{ours}: use a sandbank that was built for linux/{machine}, or name another engine with \
         SANDBANK_DOCKER_HOST"
    )))
}

fn has_cgroups(info: &SystemInfo) -> bool {
    info.cgroup_driver != Some(SystemInfoCgroupDriverEnum::NONE)
}

/// Where we reach it, and where a swarm does.
async fn addresses(client: &Client, info: &SystemInfo) -> Vec<Ipv4Addr> {
    let swarm = info.swarm.as_ref().and_then(|swarm| swarm.node_addr.as_deref());
    let mut found: Vec<Ipv4Addr> = swarm.and_then(|text| text.parse().ok()).into_iter().collect();
    let host = match &client.found.address {
        Address::Unix(_) => return found,
        Address::Tcp { host, .. } | Address::Tls { host, .. } => host,
        Address::Ssh(SshTarget { host, .. }) => host,
    };
    // A name that only ssh knows is not found, and any port will do.
    if let Ok(resolved) = tokio::net::lookup_host((host.as_str(), 0)).await {
        found.extend(resolved.filter_map(|address| match address.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }));
    }
    found
}

/// The one that containers get.
fn runtime(info: &SystemInfo, settings: &DockerSettings) -> Result<String, EngineError> {
    let usual = info.default_runtime.clone().unwrap_or_else(|| "runc".to_owned());
    let Some(wanted) = settings.runtime.clone() else { return Ok(usual) };
    let known = info.runtimes.clone().unwrap_or_default();
    // A containerd shim need not be among the configured ones.
    if known.contains_key(&wanted) || wanted.starts_with("io.containerd.") {
        return Ok(wanted);
    }
    let mut names: Vec<_> = known.into_keys().collect();
    names.sort();
    Err(EngineError::Unavailable(format!(
        "Docker has no runtime {wanted:?}, only {}; add it to its daemon.json, or change \
         docker.runtime (SANDBANK_DOCKER_RUNTIME)",
        names.join(", ")
    )))
}

fn shortcomings(info: &SystemInfo, options: &[String], runtime: &str) -> Vec<Shortcoming> {
    let mut found = Vec::new();
    let mut lacks = |control, reason: &str, fix: &str| {
        found.push(Shortcoming { control, reason: reason.to_owned(), fix: fix.to_owned() });
    };
    let (why, limits) = match (has_cgroups(info), Users::of(options)) {
        (false, Users::Rootless) => (
            "Docker is rootless and has no cgroups, so it",
            "start its host with cgroup v2 and have systemd delegate memory, cpu and pids to its \
             user, or run Docker as root",
        ),
        (true, Users::Rootless) => (
            "Docker is rootless, and its user",
            "have systemd delegate memory, cpu and pids to that user, or run Docker as root",
        ),
        _ => (
            "Docker's host",
            "mount the cgroup controller on Docker's host; `docker info` shows the warning",
        ),
    };
    for (has, control, what) in [
        (info.memory_limit, Control::MemoryLimit, "memory"),
        (info.cpu_cfs_quota, Control::CpuLimit, "cpu"),
        (info.pids_limit, Control::PidsLimit, "pids"),
    ] {
        if has != Some(true) {
            lacks(control, &format!("{why} cannot limit {what}"), limits);
        }
    }
    let own_kernel = has_own_kernel(info, runtime);
    if own_kernel {
        for (control, reason) in own_kernel::LACKS {
            lacks(control, reason, own_kernel::FIX);
        }
    }
    // That kernel filters system calls itself, whatever the host's can do.
    if !own_kernel && !options.iter().any(|option| option.contains("name=seccomp")) {
        let fix = "use a kernel and a Docker with seccomp";
        lacks(Control::Seccomp, "Docker's host cannot filter system calls", fix);
    }
    // All at once: whoever accepts one after the other is refused as often.
    let names: Vec<_> = found.iter().map(|lack| lack.control.name()).collect();
    let accept = format!("; or accept it: SANDBANK_ALLOW_WEAKER={}", names.join(","));
    for lack in &mut found {
        lack.fix.push_str(&accept);
    }
    found
}

#[cfg(test)]
mod tests {
    use bollard::models::Runtime;

    use super::*;

    fn complete() -> SystemInfo {
        SystemInfo {
            memory_limit: Some(true),
            cpu_cfs_quota: Some(true),
            pids_limit: Some(true),
            ..SystemInfo::default()
        }
    }

    #[test]
    fn what_an_engine_lacks_is_named() {
        let filtered = ["name=seccomp,profile=default".to_owned()];
        assert_eq!(shortcomings(&complete(), &filtered, "runc"), []);
        let controls = |info: &SystemInfo, options: &[String], runtime: &str| {
            let found = shortcomings(info, options, runtime);
            found.into_iter().map(|lack| lack.control).collect::<Vec<_>>()
        };
        let unlimited = SystemInfo { pids_limit: Some(false), ..complete() };
        assert_eq!(controls(&unlimited, &filtered, "runc"), [Control::PidsLimit]);
        assert_eq!(controls(&complete(), &[], "runc"), [Control::Seccomp]);
        let own_kernel = own_kernel::LACKS.map(|(control, _)| control);
        assert_eq!(controls(&complete(), &filtered, "runsc"), own_kernel);
        assert_eq!(controls(&complete(), &[], "runsc"), own_kernel);
    }

    #[test]
    fn gvisor_is_known_by_its_program_under_any_name() {
        let runtime = |path: &str| Runtime { path: Some(path.to_owned()), ..Runtime::default() };
        let known = [("gvisor", "/usr/bin/runsc"), ("usual", "/usr/bin/runc")];
        let known = known.map(|(name, path)| (name.to_owned(), runtime(path))).into();
        let info = SystemInfo { runtimes: Some(known), ..complete() };
        for (name, own) in
            [("gvisor", true), ("runsc-kvm", true), ("usual", false), ("kata", false)]
        {
            assert_eq!(has_own_kernel(&info, name), own, "{name}");
        }
    }

    #[test]
    fn a_docker_on_a_machine_that_our_runner_is_not_for_is_refused_with_the_next_step() {
        let address = Address::Unix("/run/docker.sock".into());
        runs_ours(sandbank_image_archive::machine(), &address).unwrap();
        let error = runs_ours("s390x", &address).unwrap_err().to_string();
        for words in ["/run/docker.sock", "linux/s390x", "SANDBANK_DOCKER_HOST"] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_runtime_that_is_not_there_is_refused_with_those_that_are() {
        let known = [("runc".to_owned(), Default::default())].into_iter().collect();
        let info = SystemInfo { runtimes: Some(known), ..complete() };
        let mut settings = DockerSettings::new(sandbank_engine::InstanceId::random());
        assert_eq!(runtime(&info, &settings).unwrap(), "runc");
        settings.runtime = Some("kata".to_owned());
        let error = runtime(&info, &settings).unwrap_err().to_string();
        assert!(error.contains("\"kata\"") && error.contains("runc"), "{error}");
    }

    #[test]
    fn a_rootless_engine_without_cgroups_says_so_and_what_to_accept() {
        let info = SystemInfo {
            cgroup_driver: Some(SystemInfoCgroupDriverEnum::NONE),
            memory_limit: Some(false),
            cpu_cfs_quota: Some(false),
            pids_limit: Some(false),
            ..complete()
        };
        let options = ["name=seccomp,profile=default", "name=rootless"].map(str::to_owned);
        let found = shortcomings(&info, &options, "runc");
        assert_eq!(found.len(), 3, "{found:?}");
        for lack in found {
            assert!(lack.reason.contains("rootless and has no cgroups"), "{lack:?}");
            assert!(lack.fix.contains("cgroup v2"), "{lack:?}");
            let accept = "SANDBANK_ALLOW_WEAKER=memory_limit,cpu_limit,pids_limit";
            assert!(lack.fix.ends_with(accept), "{lack:?}");
        }
    }
}
