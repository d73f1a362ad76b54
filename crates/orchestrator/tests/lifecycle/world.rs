//! A daemon's core on a runtime of its own, so that it can be killed without a chance to tidy up
//! while its machines live on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sandbank_engine::{Engine, ImageName, Limits, NetworkMode, SandboxId};
use sandbank_orchestrator::{
    Attached, Clock, CreateRequest, Created, Engines, Orchestrator, OrchestratorError, SandboxInfo,
    SandboxState, Settings, SystemClock,
};
use sandbank_protocol::{CommandId, CommandSpec, Frame};
use sandbank_store::Store;
use sandbank_test_support::eventually;
use tokio::runtime::Runtime;

use crate::process_engine::ProcessEngine;

/// Long enough for a slow machine, short enough to fail a test.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) engine: Arc<ProcessEngine>,
    /// Beside it, from the next start on.
    pub(crate) others: Vec<Arc<dyn Engine>>,
    data: tempfile::TempDir,
    settings: Settings,
    clock: Arc<dyn Clock>,
    daemon: Option<(Orchestrator, Runtime)>,
}

pub(crate) fn settings() -> Settings {
    Settings {
        max_sandboxes: 100,
        default_idle_ttl: Duration::from_secs(600),
        sweep_interval: Duration::from_millis(200),
        create_deadline: SOON,
        stop_deadline: Duration::from_secs(10),
        ..Settings::default()
    }
}

pub(crate) fn request(key: &str) -> CreateRequest {
    CreateRequest {
        key: key.parse().unwrap(),
        engine: None,
        image: ImageName::host(),
        runtime: "node24".to_owned(),
        idle_ttl: None,
        max_lifetime: None,
        limits: Limits {
            cpu_millis: 1000,
            memory_bytes: 1 << 28,
            pids: 64,
            disk_bytes: None,
            tmp_bytes: 1 << 20,
        },
        network: NetworkMode::None,
        ports: Vec::new(),
        env: BTreeMap::new(),
        workspace: None,
    }
}

pub(crate) fn bash(id: &str, script: &str) -> CommandSpec {
    CommandSpec::new(id.parse().unwrap(), ["bash", "-c", script].map(str::to_owned).to_vec())
}

impl World {
    pub(crate) async fn new(settings: Settings) -> Self {
        Self::with_clock(settings, Arc::new(SystemClock::new())).await
    }

    pub(crate) async fn with_clock(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let mut world = Self::unstarted(settings, clock);
        world.start().await;
        world
    }

    /// Until `start`, or its end.
    pub(crate) fn unstarted(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let data = tempfile::Builder::new().prefix("sandbank-world-").tempdir().unwrap();
        let (engine, others) = (ProcessEngine::new(), Vec::new());
        Self { engine, others, data, settings, clock, daemon: None }
    }

    pub(crate) async fn start(&mut self) {
        self.try_start().await.unwrap();
    }

    pub(crate) async fn try_start(&mut self) -> Result<(), OrchestratorError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let settings = self.settings.clone();
        let engines = Engines::new(self.engine.clone(), self.others.clone());
        let (clock, path) = (self.clock.clone(), self.data.path().join("sandbank.db"));
        let start = runtime.spawn(async move {
            let store = Store::open(&path).await.unwrap();
            let daemon = Orchestrator::start_with_clock(settings, engines, store, clock).await?;
            daemon.fill_pool();
            Ok(daemon)
        });
        match start.await.unwrap() {
            Ok(daemon) => self.daemon = Some((daemon, runtime)),
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        }
        Ok(())
    }

    /// As by `kill -9`: tasks stop where they are.
    pub(crate) fn kill(&mut self) {
        let (orchestrator, runtime) = self.daemon.take().expect("a daemon runs");
        drop(orchestrator);
        // A runtime must not be waited for on another one's thread.
        let gone = std::thread::spawn(move || runtime.shutdown_timeout(SOON));
        gone.join().expect("the runtime ends");
    }

    pub(crate) async fn restart_after_kill(&mut self) {
        self.kill();
        self.start().await;
    }

    pub(crate) async fn restart(&mut self) {
        self.run(async |daemon| daemon.shutdown().await).await;
        self.restart_after_kill().await;
    }

    pub(crate) fn daemon(&self) -> Orchestrator {
        self.daemon.as_ref().expect("a daemon runs").0.clone()
    }

    /// Runs on the daemon's own runtime, as its request handlers do.
    pub(crate) async fn run<T: Send + 'static, F, Fut>(&self, call: F) -> T
    where
        F: FnOnce(Orchestrator) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        let (orchestrator, runtime) = self.daemon.as_ref().expect("a daemon runs");
        runtime.spawn(call(orchestrator.clone())).await.expect("the daemon does not panic")
    }

    /// The same without waiting; it goes with the daemon.
    pub(crate) fn spawn<F, Fut>(&self, call: F)
    where
        F: FnOnce(Orchestrator) -> Fut,
        Fut: Future<Output: Send> + Send + 'static,
    {
        let (orchestrator, runtime) = self.daemon.as_ref().expect("a daemon runs");
        let call = call(orchestrator.clone());
        runtime.spawn(async move { drop(call.await) });
    }

    pub(crate) async fn try_create(
        &self,
        request: CreateRequest,
    ) -> Result<Created, OrchestratorError> {
        self.run(|daemon| async move { daemon.create(request).await }).await
    }

    pub(crate) async fn create(&self, key: &str) -> SandboxId {
        self.try_create(request(key)).await.unwrap().id
    }

    pub(crate) async fn attach(&self, id: &SandboxId) -> Result<Attached, OrchestratorError> {
        let id = id.clone();
        self.run(|daemon| async move { daemon.attach(&id).await }).await
    }

    /// Starts a script and lets go of the sandbox.
    pub(crate) async fn start_script(&self, id: &SandboxId, command: &str, script: &str) {
        let attached = self.attach(id).await.unwrap();
        attached.start(&bash(command, script)).await.unwrap();
    }

    pub(crate) async fn info(&self, id: &SandboxId) -> SandboxInfo {
        self.try_info(id).await.unwrap()
    }

    pub(crate) async fn try_info(&self, id: &SandboxId) -> Result<SandboxInfo, OrchestratorError> {
        let id = id.clone();
        self.run(|daemon| async move { daemon.inspect(&id).await }).await
    }

    pub(crate) async fn stop(&self, id: &SandboxId) -> Result<bool, OrchestratorError> {
        let id = id.clone();
        self.run(|daemon| async move { daemon.stop(&id, "the test").await }).await
    }

    /// Waits until its machine is destroyed and its row closed.
    pub(crate) async fn ended(&self, id: &SandboxId) -> SandboxInfo {
        eventually("the end of a sandbox", SOON, || async {
            let listed = self.daemon().list().await.iter().any(|info| &info.id == id);
            let info = self.info(id).await;
            (!listed && info.state.is_over()).then_some(info)
        })
        .await
        .unwrap()
    }

    pub(crate) async fn reaches(&self, id: &SandboxId, state: SandboxState) {
        let what = format!("{id} to be {}", state.as_str());
        eventually(&what, SOON, || async { (self.info(id).await.state == state).then_some(()) })
            .await
            .unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            self.kill();
        }
    }
}

/// Everything a command printed after frame `after`, and the number of the last frame.
pub(crate) async fn output(attached: &Attached, command: &str, after: u64) -> (String, u64) {
    let id: CommandId = command.parse().unwrap();
    let mut stream = attached.output(&id, after, true).await.unwrap();
    let (mut text, mut last) = (String::new(), after);
    while let Some(frame) = stream.next().await.unwrap() {
        last = frame.seq();
        match frame {
            Frame::Output { data, .. } => text.push_str(&String::from_utf8_lossy(&data)),
            Frame::Ended { .. } => break,
            _ => {}
        }
    }
    (text, last)
}
