//! The engine: one file per thing that can be done to a machine.
//!
//! ```text
//!   create ─▶ volume, container ─▶ attach ─▶ start ─▶ runner answers ─▶ running ⇄ paused
//!                   │                 │         │           │              │
//!                   └─────────────────┴─────────┴─ destroy ◀┴──────────────┘
//! ```
//! What exists of a machine is named by its id, so `destroy` works from any point without knowing
//! how far `create` came.

mod create;
mod death;
mod destroy;
mod emptiness;
mod events;
#[cfg(test)]
mod events_tests;
mod images;
mod list;
mod pause;
mod start;
mod stats;
mod table;
mod workspaces;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sandbank_engine::{
    BeforeSwap, Capabilities, Confinement, Control, ControlReport, DeathCause, Engine, EngineError,
    Freed, ImageInfo, ImageName, ImportProgress, Machine, MachineSpec, MachineStats, PullRequest,
    SandboxId, Stream, WorkspaceId, WorkspaceInfo,
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::create::create_anyway;
use self::table::Entry;
use crate::connection::Client;
use crate::controls;
use crate::egress::{self, Egress};
use crate::image::Images;
use crate::limits::{CONCURRENT_CREATES, MIN_OPEN_FILES};
use crate::network::Network;
use crate::places::Places;
use crate::runner_volume::RunnerVolume;
use crate::settings::DockerSettings;
use crate::streams;

/// Makes machines of containers. Dropping it leaves machines as they are; so does a crash.
pub struct DockerEngine {
    parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub(crate) settings: DockerSettings,
    pub(crate) client: Client,
    /// What the engine said about itself at start.
    pub(crate) host: controls::Host,
    pub(crate) table: table::Table,
    pub(crate) images: Images,
    pub(crate) runner: RunnerVolume,
    pub(crate) network: Network,
    pub(crate) places: Places,
    /// Between a removal of a kept workspace and a create that wants it.
    kept: tokio::sync::Mutex<()>,
    pub(crate) seccomp_hex: String,
    /// Of one process; less where Docker's host does not allow as many.
    open_files: AtomicU64,
    /// The host's kernel was found to have no IPv6.
    lacks_v6: AtomicBool,
    /// Controls that a runner found it cannot have here, and that the configuration accepts.
    lacking: Mutex<BTreeSet<Control>>,
    /// Images that came by this process, for the test of containment.
    imported: Mutex<BTreeSet<ImageName>>,
    pub(crate) report: controls::Cache,
    /// Why its events are not heard.
    silent: Mutex<Option<String>>,
    leaving: CancellationToken,
}

impl DockerEngine {
    pub async fn start(settings: DockerSettings) -> Result<Self, EngineError> {
        start::start(settings).await.map(|parts| Self { parts })
    }

    pub(crate) fn over(parts: &Arc<Parts>) -> Self {
        Self { parts: Arc::clone(parts) }
    }
}

#[async_trait]
impl Engine for DockerEngine {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn version(&self) -> String {
        self.parts.host.version.clone()
    }

    fn silent(&self) -> Option<String> {
        self.parts.silent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            network_egress: true,
            // No volume of an engine that we know of is held to a size.
            disk_quota: false,
            memory_limit: self.parts.has(Control::MemoryLimit),
            cpu_limit: self.parts.has(Control::CpuLimit),
            pids_limit: self.parts.has(Control::PidsLimit),
            pause: self.parts.host.has_cgroups,
            kept_workspaces: true,
            concurrent_creates: CONCURRENT_CREATES,
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

    fn relies_on(&self, control: Control) -> bool {
        controls::relies_on(control)
    }

    async fn images_to_test(&self) -> Result<Vec<ImageInfo>, EngineError> {
        images::to_test(&self.parts).await
    }

    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError> {
        create::create(&self.parts, spec).await
    }

    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
        connect(&self.parts, id).await
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
        self.parts.images.list(&self.parts.client).await
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
        _progress: &(dyn Fn(ImportProgress) + Send + Sync),
        _cancelled: &CancellationToken,
        _before_swap: &BeforeSwap,
    ) -> Result<ImageInfo, EngineError> {
        Err(images::not_pulled(name, request))
    }

    /// Docker does not say what that gave back.
    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError> {
        images::remove(&self.parts, name).await.map(|()| Freed::default())
    }

    async fn prune_images(&self) -> Result<Freed, EngineError> {
        let text = "images are Docker's own here: remove unused ones with `docker image prune`";
        Err(EngineError::Unavailable(text.to_owned()))
    }

    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        workspaces::all(&self.parts).await
    }

    async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        workspaces::exists(&self.parts, id).await
    }

    async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        workspaces::remove(&self.parts, id).await
    }

    async fn remove_empty_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        workspaces::remove_empty(&self.parts, id).await
    }

    async fn shutdown(&self) {
        start::shutdown(&self.parts).await;
    }
}

/// Ends what goes on beside it.
impl Drop for Parts {
    fn drop(&mut self) {
        self.leaving.cancel();
    }
}

impl Parts {
    /// Says whether it was heard until now. Each change is one line of the log, however long it lasts.
    fn set_silent(&self, why: Option<String>) -> bool {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let was_heard = silent.is_none();
        match &why {
            Some(why) if was_heard => {
                tracing::warn!(why, "Docker's events are not heard; trying again");
            }
            None if !was_heard => tracing::info!("Docker's events are heard again"),
            _ => {}
        }
        *silent = why;
        was_heard
    }

    /// Whether the configuration accepts to go without.
    pub(crate) fn allows_without(&self, control: Control) -> bool {
        self.settings.allow_weaker.contains(&control)
    }

    /// In force, or at least not known to be missing.
    pub(crate) fn has(&self, control: Control) -> bool {
        let known = self.host.shortcomings.iter().any(|lack| lack.control == control);
        !known && !self.lacks(control)
    }

    /// Of a machine with network, which is there then.
    pub(crate) async fn egress(&self) -> Result<Egress, EngineError> {
        let bridge = self.network.ensure(&self.client).await?;
        let address = &self.client.found.address;
        Ok(egress::learn(address, &bridge, &self.settings, &self.host))
    }

    /// A runner found out.
    pub(crate) fn lacks(&self, control: Control) -> bool {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner).contains(&control)
    }

    fn open_files(&self) -> u64 {
        self.open_files.load(Ordering::Relaxed)
    }

    /// False when there would be too few to work with.
    fn halve_open_files(&self) -> bool {
        let most = self.open_files();
        // Whoever else found out meanwhile has done it.
        let halved = (most / 2 >= MIN_OPEN_FILES).then_some(most / 2);
        if let Some(halved) = halved {
            let _ = self.open_files.compare_exchange(
                most,
                halved,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        halved.is_some()
    }

    fn has_loopback_v6(&self) -> bool {
        !self.lacks_v6.load(Ordering::Relaxed)
    }

    fn go_without_loopback_v6(&self) {
        self.lacks_v6.store(true, Ordering::Relaxed);
    }

    fn learn_lack(&self, control: Control) {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner).insert(control);
    }
}

/// A fault point, as a failure of the engine.
fn reach(point: sandbank_fault_points::Point) -> Result<(), EngineError> {
    sandbank_fault_points::reach(point).map_err(EngineError::io("go on"))
}

async fn connect(parts: &Arc<Parts>, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
    let entry = known(parts, id).await?;
    if entry.is_dead() {
        return Err(EngineError::Dead(id.clone()));
    }
    if let Some(ready) = entry.take_ready() {
        return Ok(ready);
    }
    let linking = async {
        let _linking = entry.linking.lock().await;
        entry.end_link().await;
        streams::connect(&parts.client, id, |cut| entry.set_cut(cut)).await
    };
    // Docker attaches to a container that has just died, too, and nobody answers there.
    tokio::select! {
        linked = linking => linked,
        _ = entry.death().told() => Err(EngineError::Dead(id.clone())),
    }
}

/// The machine's entry; one that another process made is taken up.
async fn known(parts: &Arc<Parts>, id: &SandboxId) -> Result<Arc<Entry>, EngineError> {
    if let Some(entry) = parts.table.get(id) {
        return Ok(entry);
    }
    let found = list::containers(parts).await?;
    match found.into_iter().find(|container| container.id == *id) {
        Some(container) => {
            let ended = container.has_ended();
            let entry = parts.table.get_or_insert(id, container.spec);
            entry.set_container(container.name);
            if ended {
                let cause = death::cause(parts, id, &entry, None).await;
                entry.set_dead(cause);
            }
            Ok(entry)
        }
        None => Err(EngineError::NotFound(id.clone())),
    }
}
