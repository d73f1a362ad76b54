//! What the daemon's configuration says about the native engine.

use std::path::PathBuf;

use sandbank_engine::{Control, ImageName, InstanceId};
use sandbank_registry::RegistrySettings;
use serde::{Deserialize, Serialize};

use crate::{StorageKind, Subnet};

#[derive(Debug, Clone)]
pub struct NativeSettings {
    /// Machines, images and workspaces live below it. Made 0700 when missing.
    pub data_dir: PathBuf,
    pub instance: InstanceId,
    /// Another data directory whose images are used instead of this one's; engines may share them.
    pub images_from: Option<PathBuf>,
    pub storage: StorageKind,
    /// Size of the sparse file behind a btrfs pool.
    pub pool_bytes: u64,
    pub subnet: Subnet,
    /// Controls that may be weaker or missing; any other one that is makes `create` fail.
    pub allow_weaker: Vec<Control>,
    pub cgroups: CgroupChoice,
    /// Ingredients kept ready, of each kind. Zero makes everything on demand.
    pub user_namespaces_ready: usize,
    pub networks_ready: usize,
    pub cgroups_ready: usize,
    pub spawner: SpawnerProgram,
    /// Where images are pulled from, and how.
    pub registries: RegistrySettings,
    #[doc(hidden)]
    pub omitted: Omitted,
}

impl NativeSettings {
    pub fn new(data_dir: impl Into<PathBuf>, instance: InstanceId) -> Self {
        Self {
            data_dir: data_dir.into(),
            instance,
            images_from: None,
            storage: StorageKind::Auto,
            pool_bytes: 64 << 30,
            subnet: Subnet::default(),
            allow_weaker: Vec::new(),
            cgroups: CgroupChoice::Auto,
            user_namespaces_ready: 16,
            networks_ready: 8,
            cgroups_ready: 16,
            spawner: SpawnerProgram::default(),
            registries: RegistrySettings::default(),
            omitted: Omitted::default(),
        }
    }
}

/// For tests of the tests of containment: controls that are claimed, but left out of every machine,
/// or of those of one image. A build without debug assertions leaves out none, whatever it is told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Omitted {
    pub controls: Vec<Control>,
    pub image: Option<ImageName>,
}

impl Omitted {
    /// What is left out of machines of this image.
    pub(crate) fn of(&self, image: &ImageName) -> Self {
        match &self.image {
            Some(only) if only != image => Self::default(),
            _ => self.clone(),
        }
    }

    pub(crate) fn contains(&self, control: Control) -> bool {
        cfg!(debug_assertions) && self.controls.contains(&control)
    }
}

impl From<Vec<Control>> for Omitted {
    fn from(controls: Vec<Control>) -> Self {
        Self { controls, image: None }
    }
}

/// Which cgroup interface machines are limited by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupChoice {
    /// v2 where it has the memory, cpu and pids controllers, else v1.
    #[default]
    Auto,
    V1,
    V2,
}

/// The program that becomes the spawner. It must call [`crate::spawner_main`] before it starts
/// any thread.
#[derive(Debug, Clone)]
pub struct SpawnerProgram {
    pub path: PathBuf,
    pub arguments: Vec<String>,
}

impl Default for SpawnerProgram {
    fn default() -> Self {
        Self {
            path: PathBuf::from("/proc/self/exe"),
            arguments: vec![crate::SPAWNER_ARGUMENT.to_owned()],
        }
    }
}
