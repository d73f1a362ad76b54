//! The place of an engine that was not there when the daemon started.
//!
//! Its machines may well be there, and their sandboxes are not given up: whatever is asked of them
//! fails with the reason until the engine arrives, and from then on it is the engine that answers.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    BeforeSwap, Capabilities, Confinement, Control, ControlReport, DeathCause, Engine, EngineError,
    Freed, ImageInfo, ImageName, ImportProgress, Machine, MachineSpec, MachineStats, PullRequest,
    SandboxId, Stream, WorkspaceId, WorkspaceInfo,
};

/// Creates at the same time as long as nobody can say what makes sense.
const CONCURRENT_CREATES: usize = 4;

pub struct Awaited {
    name: &'static str,
    engine: OnceLock<Arc<dyn Engine>>,
    reason: Mutex<String>,
    arrival: CancellationToken,
}

impl Awaited {
    pub fn new(name: &'static str, reason: String) -> Self {
        let (engine, arrival) = (OnceLock::new(), CancellationToken::new());
        Self { name, engine, reason: Mutex::new(reason), arrival }
    }

    /// Why it is still not there.
    pub fn is_missing_for(&self, reason: String) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Once, and for good: an engine that goes away afterwards says so itself.
    pub fn arrives(&self, engine: Arc<dyn Engine>) {
        let _ = self.engine.set(engine);
        self.arrival.cancel();
    }

    fn engine(&self) -> Result<&dyn Engine, EngineError> {
        match self.engine.get() {
            Some(engine) => Ok(&**engine),
            None => Err(EngineError::Unavailable(self.reason())),
        }
    }

    fn reason(&self) -> String {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Engine for Awaited {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.engine().map_or_else(|_| "unknown".to_owned(), |engine| engine.version())
    }

    fn absent(&self) -> Option<String> {
        match self.engine() {
            Ok(engine) => engine.absent(),
            Err(_) => Some(self.reason()),
        }
    }

    fn silent(&self) -> Option<String> {
        match self.engine() {
            Ok(engine) => engine.silent(),
            Err(_) => Some(self.reason()),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let unknown = |_| Capabilities {
            network_egress: false,
            disk_quota: false,
            memory_limit: false,
            cpu_limit: false,
            pids_limit: false,
            pause: false,
            kept_workspaces: false,
            concurrent_creates: CONCURRENT_CREATES,
        };
        self.engine().map_or_else(unknown, |engine| engine.capabilities())
    }

    async fn controls(&self) -> Vec<ControlReport> {
        match self.engine() {
            Ok(engine) => engine.controls().await,
            Err(_) => Vec::new(),
        }
    }

    async fn confinement(&self, id: &SandboxId) -> Result<Confinement, EngineError> {
        self.engine()?.confinement(id).await
    }

    fn confinement_key(&self) -> Option<String> {
        self.engine().ok()?.confinement_key()
    }

    fn accepts_without(&self, control: Control) -> bool {
        self.engine().is_ok_and(|engine| engine.accepts_without(control))
    }

    fn relies_on(&self, control: Control) -> bool {
        self.engine().map_or(true, |engine| engine.relies_on(control))
    }

    async fn images_to_test(&self) -> Result<Vec<ImageInfo>, EngineError> {
        self.engine()?.images_to_test().await
    }

    async fn create(&self, spec: &MachineSpec) -> Result<Machine, EngineError> {
        self.engine()?.create(spec).await
    }

    async fn connect(&self, id: &SandboxId) -> Result<Box<dyn Stream>, EngineError> {
        self.engine()?.connect(id).await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.engine()?.destroy(id).await
    }

    async fn pause(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.engine()?.pause(id).await
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), EngineError> {
        self.engine()?.resume(id).await
    }

    async fn list(&self) -> Result<Vec<Machine>, EngineError> {
        self.engine()?.list().await
    }

    async fn stats(&self, id: &SandboxId) -> Result<MachineStats, EngineError> {
        self.engine()?.stats(id).await
    }

    /// Nobody can tell before it has arrived.
    async fn wait_dead(&self, id: &SandboxId) -> Result<DeathCause, EngineError> {
        self.arrival.cancelled().await;
        self.engine()?.wait_dead(id).await
    }

    async fn images(&self) -> Result<Vec<ImageInfo>, EngineError> {
        self.engine()?.images().await
    }

    async fn import_image(
        &self,
        name: &ImageName,
        archive: &Path,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
    ) -> Result<ImageInfo, EngineError> {
        self.engine()?.import_image(name, archive, progress).await
    }

    async fn pull_image(
        &self,
        name: &ImageName,
        request: &PullRequest,
        progress: &(dyn Fn(ImportProgress) + Send + Sync),
        cancelled: &CancellationToken,
        before_swap: &BeforeSwap,
    ) -> Result<ImageInfo, EngineError> {
        self.engine()?.pull_image(name, request, progress, cancelled, before_swap).await
    }

    async fn remove_image(&self, name: &ImageName) -> Result<Freed, EngineError> {
        self.engine()?.remove_image(name).await
    }

    async fn prune_images(&self) -> Result<Freed, EngineError> {
        self.engine()?.prune_images().await
    }

    async fn workspaces(&self) -> Result<Vec<WorkspaceInfo>, EngineError> {
        self.engine()?.workspaces().await
    }

    async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        self.engine()?.has_workspace(id).await
    }

    async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        self.engine()?.remove_workspace(id).await
    }

    async fn remove_empty_workspace(&self, id: &WorkspaceId) -> Result<bool, EngineError> {
        self.engine()?.remove_empty_workspace(id).await
    }

    async fn workspace_quota(&self, id: &WorkspaceId) -> Result<Option<u64>, EngineError> {
        self.engine()?.workspace_quota(id).await
    }

    async fn shutdown(&self) {
        if let Ok(engine) = self.engine() {
            engine.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        tokio::select! {
            biased;
            value = future => Some(value),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn until_it_arrives_it_says_why_and_then_the_engine_answers() {
        // An engine that is awaited, too, is an engine like any other.
        let inner = Arc::new(Awaited::new("inner", "asleep".to_owned()));
        let awaited = Awaited::new("docker", "no socket".to_owned());
        let id = SandboxId::random();
        assert_eq!((awaited.name(), awaited.absent().as_deref()), ("docker", Some("no socket")));
        let refused = awaited.list().await.unwrap_err();
        assert!(matches!(&refused, EngineError::Unavailable(why) if why == "no socket"));
        awaited.is_missing_for("no answer".to_owned());
        assert_eq!(awaited.absent().as_deref(), Some("no answer"));

        let mut watching = Box::pin(awaited.wait_dead(&id));
        assert!(poll_once(&mut watching).await.is_none(), "nobody can tell");
        drop(watching);
        awaited.arrives(inner.clone());
        assert_eq!(awaited.absent().as_deref(), Some("asleep"), "it is asked itself");
        let refused = awaited.destroy(&id).await.unwrap_err();
        assert!(matches!(&refused, EngineError::Unavailable(why) if why == "asleep"));
    }
}
