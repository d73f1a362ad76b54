//! What the engine says about itself, asked once at start.

use std::net::{IpAddr, Ipv4Addr};

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use sandbank_engine::{Control, EngineError};

use super::Shortcoming;
use crate::connection::{Address, Client, SshTarget};
use crate::settings::DockerSettings;

pub(crate) struct Host {
    /// For people.
    pub(crate) version: String,
    /// All that confinement depends on.
    pub(crate) fingerprint: String,
    /// The engine itself runs in a user namespace, or puts containers into one.
    pub(crate) user_namespace: Option<&'static str>,
    /// Containers outlive the engine's restart.
    pub(crate) live_restore: bool,
    pub(crate) shortcomings: Vec<Shortcoming>,
    /// Addresses of its host that became known by the way. There may be more.
    pub(crate) addresses: Vec<Ipv4Addr>,
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
                "Docker at {} makes {system} containers; sandboxes need linux ones",
                client.found.address
            )));
        }
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
        Ok(Self {
            version,
            fingerprint,
            user_namespace: user_namespace(&options),
            live_restore: info.live_restore_enabled == Some(true),
            shortcomings: shortcomings(&info, &options, &runtime),
            addresses: addresses(client, &info).await,
        })
    }
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

fn user_namespace(options: &[String]) -> Option<&'static str> {
    let has = |name: &str| options.iter().any(|option| option.split(',').any(|o| o == name));
    if has("name=rootless") {
        Some("Docker is rootless: root inside is the user who runs it")
    } else if has("name=userns") {
        Some("Docker maps the users of all containers to one range (userns-remap)")
    } else {
        None
    }
}

fn shortcomings(info: &SystemInfo, options: &[String], runtime: &str) -> Vec<Shortcoming> {
    let mut found = Vec::new();
    let mut lacks = |control, reason: &str, fix: &str| {
        found.push(Shortcoming { control, reason: reason.to_owned(), fix: fix.to_owned() });
    };
    let controller =
        "mount the cgroup controller on Docker's host; `docker info` shows the warning";
    for (has, control, what) in [
        (info.memory_limit, Control::MemoryLimit, "memory"),
        (info.cpu_cfs_quota, Control::CpuLimit, "cpu"),
        (info.pids_limit, Control::PidsLimit, "pids"),
    ] {
        if has != Some(true) {
            lacks(control, &format!("Docker's host cannot limit {what}"), controller);
        }
    }
    // gVisor answers system calls itself: there is no kernel below it that could filter them, and
    // its own has no landlock.
    let own_kernel = runtime.contains("runsc");
    if own_kernel {
        let fix = "gVisor's own kernel stands in its place: accept that with \
                   SANDBANK_ALLOW_WEAKER=landlock";
        lacks(Control::Landlock, "the runtime runsc has no landlock", fix);
    }
    if !own_kernel && !options.iter().any(|option| option.contains("name=seccomp")) {
        let fix = "use a kernel and a Docker with seccomp";
        lacks(Control::Seccomp, "Docker's host cannot filter system calls", fix);
    }
    found
}

#[cfg(test)]
mod tests {
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
        assert_eq!(controls(&complete(), &filtered, "runsc"), [Control::Landlock]);
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
    fn user_namespaces_are_seen_in_the_options() {
        let options = |text: &str| [text.to_owned()];
        assert!(user_namespace(&options("name=rootless")).is_some());
        assert!(user_namespace(&options("name=userns")).is_some());
        assert!(user_namespace(&options("name=seccomp,profile=default")).is_none());
    }
}
