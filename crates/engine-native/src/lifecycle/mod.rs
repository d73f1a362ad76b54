//! The engine: one file per thing that can be done to a machine.
//!
//! ```text
//!   create ─▶ directory, record ─▶ ingredients ─▶ spawner ─▶ running ⇄ paused
//!                   │                   │             │          │
//!                   └───────────────────┴── destroy ◀─┴──────────┘  (also after a crash, at any point)
//! ```
//! What exists of a machine is named by its id, so `destroy` works from any point without knowing
//! how far `create` came.

mod connect;
mod controls;
mod create;
mod death;
mod destroy;
mod image_trees;
mod images;
mod ingredients;
mod list;
mod mounts;
mod pause;
mod pull;
mod start;
mod stats;
mod stock;
mod table;
mod workspaces;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sandbank_engine::{
    BeforeSwap, Capabilities, Confinement, Control, ControlReport, DeathCause, Engine, EngineError,
    Freed, ImageInfo, ImageName, ImportProgress, Machine, MachineSpec, MachineStats, PullRequest,
    SandboxId, Stream, WorkspaceId, WorkspaceInfo,
};
use tokio_util::sync::CancellationToken;

use crate::cgroup::Cgroups;
use crate::host::Host;
use crate::image::ImageStore;
use crate::machine::Directory;
use crate::network::Networks;
use crate::settings::NativeSettings;
use crate::spawner::Spawner;
use crate::storage::{Identity, Kept, Storage};
use crate::user_namespace::UserNamespaces;

/// Makes machines of namespaces. Dropping it leaves machines as they are; so does a crash.
pub struct NativeEngine {
    parts: Arc<Parts>,
}

struct Parts {
    settings: NativeSettings,
    /// The daemon is an ordinary user.
    rootless: bool,
    /// This daemon among others of the host; none without root.
    host: Option<Arc<Host>>,
    /// The truth about which machines exist.
    directory: Directory,
    /// What this process knows beyond that: descriptors, deaths, who is busy with which.
    table: table::Table,
    storage: Box<dyn Storage>,
    /// Of the directory that holds the workspaces, when it was opened.
    storage_root: Identity,
    /// Workspaces that are no machine's own.
    kept: Kept,
    images: ImageStore,
    image_trees: image_trees::ImageTrees,
    /// None without root: machines then have loopback of their own making, and nothing else.
    networks: Option<Networks>,
    cgroups: Box<dyn Cgroups>,
    spawner: Arc<Spawner>,
    user_namespaces: UserNamespaces,
    /// Of the running kernel.
    boot: String,
    /// Counted once: to ask takes reading several files.
    cores: usize,
    /// The sealed runner.
    runner: std::os::fd::OwnedFd,
    seccomp_hex: String,
    stock: stock::Stock,
    /// What was found missing at start.
    shortcomings: Vec<controls::Shortcoming>,
    /// The last measured report, and when.
    report: controls::Cache,
}

impl NativeEngine {
    pub async fn start(settings: NativeSettings) -> Result<Self, EngineError> {
        start::start(settings).await.map(|parts| Self { parts })
    }

    /// The first control that no machine is made without, that cannot be had here, and why.
    pub fn refuses_for(&self) -> Option<(Control, String)> {
        let mut lacks = self.parts.shortcomings.iter();
        let lack = lacks.find(|lack| !self.parts.allows_without(lack.control))?;
        Some((lack.control, lack.reason.clone()))
    }

    /// The process that makes machines; another takes its place when it dies.
    pub async fn spawner_pid(&self) -> Option<u32> {
        self.parts.spawner.pid().await
    }
}

#[async_trait]
impl Engine for NativeEngine {
    fn name(&self) -> &'static str {
        "native"
    }

    fn version(&self) -> String {
        let system = rustix::system::uname();
        let kernel = system.release().to_string_lossy();
        format!("{} (Linux {kernel}, {})", env!("CARGO_PKG_VERSION"), self.parts.cgroups.describe())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            network_egress: self.parts.egress().is_ok(),
            disk_quota: self.parts.storage.enforces_quota(),
            memory_limit: self.parts.has(Control::MemoryLimit),
            cpu_limit: self.parts.has(Control::CpuLimit),
            pids_limit: self.parts.has(Control::PidsLimit),
            pause: self.parts.cgroups.can_freeze(),
            kept_workspaces: true,
            concurrent_creates: 2 * self.parts.cores,
        }
    }

    async fn controls(&self) -> Vec<ControlReport> {
        controls::report(&self.parts).await
    }

    async fn confinement(&self, id: &SandboxId) -> Result<Confinement, EngineError> {
        controls::confinement(&self.parts, id).await
    }

    fn confinement_key(&self) -> Option<String> {
        Some(controls::key(&self.parts))
    }

    fn accepts_without(&self, control: Control) -> bool {
        self.parts.allows_without(control)
    }

    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError> {
        create::create(&self.parts, spec).await
    }

    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
        connect::connect(&self.parts, id).await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), EngineError> {
        destroy::destroy(&self.parts, id).await
    }

    async fn pause(&self, id: &SandboxId) -> Result<(), EngineError> {
        pause::pause(&self.parts, id).await
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), EngineError> {
        pause::resume(&self.parts, id).await
    }

    async fn list(&self) -> Result<Vec<Machine>, EngineError> {
        list::list(&self.parts).await
    }

    async fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        stats::stats(&self.parts, id).await
    }

    async fn wait_dead(&self, id: &SandboxId) -> Result<DeathCause, EngineError> {
        death::wait(&self.parts, id).await
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, EngineError> {
        images::list(&self.parts).await
    }

    async fn import_image(
        &self,
        name: &ImageName,
        archive: &Path,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
    ) -> Result<ImageInfo, EngineError> {
        images::import(&self.parts, name, archive, progress).await
    }

    async fn pull_image(
        &self,
        name: &ImageName,
        request: &PullRequest,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
        cancelled: &CancellationToken,
        before_swap: &BeforeSwap,
    ) -> Result<ImageInfo, EngineError> {
        pull::pull(&self.parts, name, request, progress, cancelled, before_swap).await
    }

    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError> {
        images::remove(&self.parts, name).await
    }

    async fn prune_images(&self) -> Result<Freed, EngineError> {
        images::prune(&self.parts).await
    }

    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        workspaces::list(&self.parts).await
    }

    async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        Ok(self.parts.kept.path(id).is_dir())
    }

    async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        workspaces::remove(&self.parts, id).await
    }

    async fn remove_empty_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        workspaces::remove_empty(&self.parts, id).await
    }

    async fn workspace_quota(&self, id: &WorkspaceId) -> Result<Option<u64>, EngineError> {
        workspaces::quota(&self.parts, id).await
    }

    async fn shutdown(&self) {
        start::shutdown(&self.parts).await;
    }
}

impl Parts {
    /// Why machines cannot have the default network, if so.
    fn egress(&self) -> Result<(), String> {
        match &self.networks {
            Some(networks) => networks.egress_available(),
            None => Err("links and packet filters need root; use network none".to_owned()),
        }
    }
}

/// A fault point, as a failure of the engine.
fn reach(point: sandbank_fault_points::Point) -> Result<(), EngineError> {
    sandbank_fault_points::reach(point).map_err(EngineError::io("go on"))
}

/// Runs blocking kernel work off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(EngineError::Internal(format!("a worker failed: {error}"))),
    }
}
