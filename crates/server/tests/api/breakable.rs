//! The process engine with channels that can be cut, as a restarting proxy would cut them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sandbank_engine::{
    Capabilities, ControlReport, DeathCause, Engine, EngineError, Freed, ImageInfo, ImageName,
    ImportProgress, Machine, MachineSpec, MachineStats, SandboxId, Stream, WorkspaceId,
    WorkspaceInfo,
};
use tokio_util::sync::CancellationToken;

use crate::process_engine::ProcessEngine;

pub(crate) struct Breakable {
    inner: Arc<ProcessEngine>,
    cut: Mutex<CancellationToken>,
    /// Imports of [`HELD_ARCHIVE`] wait for it, and then succeed.
    pub(crate) release_import: CancellationToken,
    imported: Mutex<Vec<ImageInfo>>,
    /// Whether it is asked in vain which images there are, as a Docker that was stopped is.
    pub(crate) is_away: AtomicBool,
    /// How often all workspaces were listed, which measures each.
    pub(crate) measured: AtomicUsize,
}

pub(crate) const HELD_ARCHIVE: &str = "/held.tar";

impl Breakable {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: ProcessEngine::new(),
            cut: Mutex::default(),
            release_import: CancellationToken::new(),
            imported: Mutex::default(),
            is_away: AtomicBool::new(false),
            measured: AtomicUsize::new(0),
        })
    }

    /// See [`ProcessEngine::impersonate`].
    pub(crate) fn impersonate(&self, id: &SandboxId) -> tokio::net::UnixListener {
        self.inner.impersonate(id)
    }

    /// Cuts every channel there is; new ones work.
    pub(crate) fn cut_channels(&self) {
        std::mem::take(&mut *self.cut.lock().unwrap()).cancel();
    }
}

#[async_trait]
impl Engine for Breakable {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> String {
        self.inner.version()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn controls(&self) -> Vec<ControlReport> {
        self.inner.controls().await
    }

    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError> {
        self.inner.create(spec).await
    }

    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
        let mut far = self.inner.connect(id).await?;
        let (near, mut other) = tokio::io::duplex(64 * 1024);
        let cut = self.cut.lock().unwrap().clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut far, &mut other) => {}
                () = cut.cancelled() => {}
            }
        });
        Ok(Box::new(near))
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.inner.destroy(id).await
    }

    async fn pause(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.inner.pause(id).await
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.inner.resume(id).await
    }

    async fn list(&self) -> Result<Vec<Machine>, EngineError> {
        self.inner.list().await
    }

    async fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        self.inner.stats(id).await
    }

    async fn wait_dead(&self, id: &SandboxId) -> Result<DeathCause, EngineError> {
        self.inner.wait_dead(id).await
    }

    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        self.measured.fetch_add(1, Ordering::SeqCst);
        self.inner.workspaces().await
    }

    async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        self.inner.has_workspace(id).await
    }

    async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        self.inner.remove_workspace(id).await
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, EngineError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(EngineError::Unavailable("it is away".to_owned())),
            false => Ok(self.imported.lock().unwrap().clone()),
        }
    }

    async fn import_image(
        &self,
        name: &ImageName,
        archive: &Path,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
    ) -> Result<ImageInfo, EngineError> {
        progress(ImportProgress { bytes_done: 1, bytes_total: 2 });
        if archive != Path::new(HELD_ARCHIVE) {
            return self.inner.import_image(name, archive, progress).await;
        }
        self.release_import.cancelled().await;
        let name = name.clone();
        let image =
            ImageInfo { name, digest: None, size_bytes: 2, layers: 1, imported_at_ms: None };
        self.imported.lock().unwrap().push(image.clone());
        Ok(image)
    }

    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError> {
        self.inner.remove_image(name).await
    }

    async fn shutdown(&self) {
        self.inner.shutdown().await;
    }
}
