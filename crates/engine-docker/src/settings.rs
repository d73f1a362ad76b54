//! What the daemon's configuration says about the Docker engine.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use sandbank_engine::{Control, ImageName, InstanceId};
use sandbank_image_archive::ImportLimits;

#[derive(Debug, Clone)]
pub struct DockerSettings {
    pub instance: InstanceId,
    /// `unix:///path`, `/path`, `tcp://host:port` or `ssh://user@host`. None: as the Docker CLI
    /// finds it.
    pub host: Option<String>,
    /// Of those that the engine knows (`runc`, …). None: the engine's default.
    pub runtime: Option<String>,
    /// Of the bridge that machines with network are on. None: one of this instance's own.
    pub network: Option<String>,
    /// Public addresses of Docker's host, for a daemon that is not on it: no machine reaches them.
    pub host_addresses: Vec<Ipv4Addr>,
    /// Whom machines with network ask for names. Empty: whom Docker's host asks, as far as known.
    pub resolvers: Vec<Ipv4Addr>,
    /// The image that containment is tested with, and that callers who name none get.
    pub default_image: Option<ImageName>,
    /// Controls that may be weaker or missing; any other one that is makes `create` fail.
    pub allow_weaker: Vec<Control>,
    /// Below which containers have their cgroups. None: where the engine puts them.
    pub cgroup_parent: Option<String>,
    /// Where archives are uncompressed, to files without a name.
    pub scratch: PathBuf,
    pub import_limits: ImportLimits,
}

impl DockerSettings {
    pub fn new(instance: InstanceId) -> Self {
        Self {
            instance,
            host: None,
            runtime: None,
            network: None,
            host_addresses: Vec::new(),
            resolvers: Vec::new(),
            default_image: None,
            allow_weaker: Vec::new(),
            cgroup_parent: None,
            scratch: std::env::temp_dir(),
            import_limits: ImportLimits::default(),
        }
    }
}
