//! The public face: finds the sandbox and hands over.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use sandbank_engine::{Engine, SandboxId, WorkspaceId};
use sandbank_protocol::ShellName;
use sandbank_store::{Event, Store};
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::acquire::Acquired;
use crate::clock::{Clock, SystemClock};
use crate::containment::{self, Containment, SelfTest, Tested};
use crate::context::Context;
use crate::create::Kept;
use crate::events::EventLog;
use crate::lifecycle::{Rules, Standing};
use crate::ports::HostPorts;
use crate::provider::Providers;
use crate::registry::Registry;
use crate::sandbox::{Message, SharedSandbox};
use crate::spans::operation;
use crate::{
    Attached, Cause, CreateRequest, Created, Engines, Images, KeptWorkspaces, OrchestratorError,
    PoolStatus, PostMortem, Published, SandboxInfo, SandboxKey, SandboxState, SandboxStats,
    Settings, Status, by_key, create, pool, ports, reconcile, shutdown, status, stop, sweep,
    workspaces,
};

/// Every sandbox of one data directory. Cheap to clone.
#[derive(Clone)]
pub struct Orchestrator {
    context: Arc<Context>,
}

impl Orchestrator {
    /// Takes the store for itself, brings rows and engine objects together, and listens again on
    /// the published ports.
    pub async fn start(
        settings: Settings,
        engines: impl Into<Engines>,
        store: Store,
    ) -> Result<Self, OrchestratorError> {
        Self::start_with_clock(settings, engines, store, Arc::new(SystemClock::new())).await
    }

    /// The same with a clock of the caller's, for tests of time.
    pub async fn start_with_clock(
        settings: Settings,
        engines: impl Into<Engines>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OrchestratorError> {
        store.claim()?;
        let context = Arc::new(Context {
            rules: Rules::from(&settings),
            events: EventLog::start(store.clone(), clock.clone()).await?,
            registry: Registry::default(),
            host_ports: HostPorts::new(settings.port_range.clone()),
            acquired: Acquired::default(),
            leaving: CancellationToken::new(),
            providers: Providers::new(engines.into(), &settings),
            settings,
            store,
            clock,
        });
        let names: Vec<_> = context.providers.all().map(|provider| provider.name()).collect();
        let detail = json!({ "engine": names[0], "engines": names });
        context.events.emit("daemon.started", None, detail);
        reconcile::reconcile(&context).await?;
        for provider in context.providers.all() {
            tokio::spawn(sweep::run(context.clone(), provider.clone()));
        }
        Ok(Self { context })
    }

    /// Begins to make ready machines, if the settings ask for any. Not before it is known whether
    /// any may be made: see [`Orchestrator::withhold_creates`].
    pub fn fill_pool(&self) {
        for provider in self.context.providers.all().filter(|one| one.pool.is_wanted()) {
            tokio::spawn(pool::run(self.context.clone(), provider.clone()));
        }
    }

    pub fn pool(&self) -> Vec<PoolStatus> {
        status::pool(&self.context)
    }

    /// Finds the live sandbox with this key, or makes it. Concurrent callers get the same one,
    /// and exactly one of them is told that it was created. A caller that goes away leaves a
    /// whole sandbox, or none.
    pub async fn create(&self, request: CreateRequest) -> Result<Created, OrchestratorError> {
        operation("create", None, create::create(&self.context, request, Kept::Allowed)).await
    }

    /// The same for a caller who may open no kept workspace, not by a sandbox's key either: the
    /// sandbox that has one is neither given nor touched.
    pub async fn create_without_kept(
        &self,
        request: CreateRequest,
    ) -> Result<Created, OrchestratorError> {
        if request.workspace.is_some() {
            return Err(OrchestratorError::KeptWorkspace);
        }
        operation("create", None, create::create(&self.context, request, Kept::Refused)).await
    }

    /// Asks nobody.
    pub fn find_living(&self, id: &SandboxId) -> Option<SandboxInfo> {
        Some(self.context.registry.find(id)?.info(&*self.context.clock))
    }

    /// Everything that may have a machine, oldest first. Busy ones are asked again.
    pub async fn list(&self) -> Vec<SandboxInfo> {
        let clock = &*self.context.clock;
        let mut busy = self.context.registry.all();
        busy.retain(|sandbox| sandbox.info(clock).busy);
        // All at once, so that they share one deadline however many they are.
        join_all(busy.iter().map(|sandbox| sandbox.refresh())).await;
        let mut infos: Vec<_> =
            self.context.registry.all().iter().map(|sandbox| sandbox.info(clock)).collect();
        infos.sort_by(|a, b| (a.created_at_ms, &a.id).cmp(&(b.created_at_ms, &b.id)));
        infos
    }

    /// Also of a sandbox that has ended, as long as its post-mortem is kept.
    pub async fn inspect(&self, id: &SandboxId) -> Result<SandboxInfo, OrchestratorError> {
        if let Some(sandbox) = self.context.registry.find(id) {
            sandbox.refresh().await;
        }
        self.recall(id).await
    }

    /// As [`Self::inspect`], without asking the sandbox itself.
    pub async fn recall(&self, id: &SandboxId) -> Result<SandboxInfo, OrchestratorError> {
        if let Some(info) = self.find_living(id) {
            return Ok(info);
        }
        let row = self.context.store.sandboxes().find(id).await?;
        by_key::closed(&row.ok_or_else(|| OrchestratorError::NotFound(id.clone()))?)
    }

    /// The living sandbox with this key, else the newest that has ended and is still known.
    pub async fn find_key(
        &self,
        key: &SandboxKey,
    ) -> Result<Option<SandboxInfo>, OrchestratorError> {
        by_key::find(&self.context, key).await
    }

    /// Of a living or an ended one; none once it is forgotten.
    pub async fn key_of(&self, id: &SandboxId) -> Result<Option<SandboxKey>, OrchestratorError> {
        by_key::of(&self.context, id).await
    }

    /// Living and ended ones whose key begins so, newest first.
    pub async fn with_key_prefix(
        &self,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<SandboxInfo>, OrchestratorError> {
        by_key::with_prefix(&self.context, prefix, limit).await
    }

    /// Where a shell of the sandbox was after its last script. Not a use of the sandbox.
    pub async fn shell_directory(
        &self,
        id: &SandboxId,
        shell: &ShellName,
    ) -> Result<Option<String>, OrchestratorError> {
        by_key::shell_directory(&self.living(id).await?, shell).await
    }

    /// Returns when it is gone; false when there was no such sandbox.
    pub async fn stop(&self, id: &SandboxId, by: &str) -> Result<bool, OrchestratorError> {
        operation("stop", Some(id), stop::stop(&self.context, id, by)).await
    }

    pub async fn attach(&self, id: &SandboxId) -> Result<Attached, OrchestratorError> {
        let attaching = async { Attached::to(self.living(id).await?).await };
        operation("attach", Some(id), attaching).await
    }

    /// Idempotent, on the same host port; none when the port is not in the allow-list.
    pub async fn publish(
        &self,
        id: &SandboxId,
        port: u16,
    ) -> Result<Option<Published>, OrchestratorError> {
        let sandbox = self.living(id).await?;
        if !sandbox.facts.ports.contains(&port) {
            return Ok(None);
        }
        sandbox.ready().await?;
        let publishing = ports::publish(&self.context, &sandbox, port);
        operation("publish", Some(id), publishing).await.map(Some)
    }

    /// Idempotent; open connections are cut.
    pub async fn unpublish(&self, id: &SandboxId, port: u16) -> Result<(), OrchestratorError> {
        ports::unpublish(&self.context, &self.living(id).await?, port).await
    }

    /// Stops every process where it stands. What was running counts as busy meanwhile.
    pub async fn pause(&self, id: &SandboxId) -> Result<(), OrchestratorError> {
        operation("pause", Some(id), self.change(id, Standing::Paused)).await
    }

    pub async fn resume(&self, id: &SandboxId) -> Result<(), OrchestratorError> {
        operation("resume", Some(id), self.change(id, Standing::Running)).await
    }

    /// Not a use of the sandbox: looking does not extend its life.
    pub async fn stats(&self, id: &SandboxId) -> Result<SandboxStats, OrchestratorError> {
        let sandbox = self.living(id).await?;
        sandbox.ready().await?;
        let machine = sandbox.engine().stats(id).await?;
        if sandbox.view.borrow().state.visible() == SandboxState::Paused {
            return Ok(SandboxStats { machine, runner: None });
        }
        let channel = sandbox.channel_after(0).await?;
        let runner = match channel.client.stats().await {
            Err(error) if error.is_broken() => {
                sandbox.channel_after(channel.serial).await?.client.stats().await?
            }
            answer => answer?,
        };
        Ok(SandboxStats { machine, runner: Some(runner) })
    }

    /// Attacks the sandbox from inside, as a command of it, and looks at it from the host. What
    /// would disturb others in it is left out.
    pub async fn containment(&self, id: &SandboxId) -> Result<Containment, OrchestratorError> {
        let started = std::time::Instant::now();
        let sandbox = self.living(id).await?;
        let attached = Attached::to(sandbox.clone()).await?;
        let engine = sandbox.engine();
        let plan = engine.confinement(id).await?.battery_plan(false);
        let inside = containment::run(&attached, &plan).await?;
        let confinement = engine.confinement(id).await?;
        Ok(containment::judge(engine, &confinement, &inside, started.elapsed()))
    }

    /// No new sandbox is made by this engine until [`Orchestrator::catch_up`] has a good result;
    /// those there are go on.
    pub fn withhold_creates(&self, engine: &str, why: OrchestratorError) {
        if let Some(provider) = self.context.providers.find(engine) {
            provider.clearance.withhold_all(why);
        }
    }

    /// Tries the self-test of an engine again and again, and makes sandboxes again once nothing got
    /// out. None when the daemon leaves first.
    pub async fn catch_up(&self, engine: &str, test: SelfTest, data_dir: &Path) -> Option<Tested> {
        let provider = self.context.providers.find(engine)?;
        containment::catch_up(&self.context, provider, test, data_dir).await
    }

    /// Why an engine that is there makes no sandboxes all the same.
    pub fn withheld(&self, engine: &str) -> Option<OrchestratorError> {
        self.context.providers.find(engine)?.clearance.withheld()
    }

    /// Every kept workspace, whether a sandbox has it or not.
    pub async fn workspaces(&self) -> Result<KeptWorkspaces, OrchestratorError> {
        workspaces::all(&self.context).await
    }

    pub async fn has_workspace(&self, id: &WorkspaceId) -> Result<bool, OrchestratorError> {
        Ok(self.workspace_engine(id).await?.is_some())
    }

    /// The name of the engine that has the workspace.
    pub async fn workspace_engine(
        &self,
        id: &WorkspaceId,
    ) -> Result<Option<&'static str>, OrchestratorError> {
        Ok(workspaces::holder(&self.context, id).await?.map(|provider| provider.name()))
    }

    /// What the workspace may take on disk, where something holds it to that.
    pub async fn workspace_quota(
        &self,
        id: &WorkspaceId,
    ) -> Result<Option<u64>, OrchestratorError> {
        match workspaces::holder(&self.context, id).await? {
            Some(provider) => Ok(provider.engine.workspace_quota(id).await?),
            None => Ok(None),
        }
    }

    /// A running sandbox that has the workspace, through which its files can be reached.
    pub fn sandbox_with_workspace(&self, id: &WorkspaceId) -> Option<SandboxId> {
        workspaces::running_with(&self.context, id)
    }

    /// Whose a living sandbox is: its key, and the kept workspace that it has.
    pub fn ownership(&self, id: &SandboxId) -> Option<(SandboxKey, Option<WorkspaceId>)> {
        let facts = &self.context.registry.find(id)?.facts;
        Some((facts.key.clone(), facts.workspace.clone()))
    }

    /// Removes a kept workspace with all that is in it; false when there is none of that name.
    /// Refused while a sandbox has it.
    pub async fn remove_workspace(&self, id: &WorkspaceId) -> Result<bool, OrchestratorError> {
        workspaces::remove(&self.context, id).await
    }

    pub async fn post_mortem(&self, id: &SandboxId) -> Result<PostMortem, OrchestratorError> {
        let row = self.context.store.post_mortems().find(id).await?;
        let row = row.ok_or_else(|| OrchestratorError::NotFound(id.clone()))?;
        serde_json::from_value(row.body).map_err(|error| {
            OrchestratorError::Internal(format!("the post-mortem of {id}: {error}"))
        })
    }

    /// Stored events after `after`, then live ones, without a gap or a repetition.
    pub async fn events(
        &self,
        after: u64,
    ) -> Result<(Vec<Event>, broadcast::Receiver<Event>), OrchestratorError> {
        let subscription = self.context.events.subscribe(after).await;
        Ok(subscription.ok_or(OrchestratorError::ShuttingDown)??)
    }

    /// For those who watch the daemon; asks no sandbox.
    pub fn status(&self) -> Status {
        Status::of(&self.context)
    }

    /// The one that makes the sandboxes of those who name none.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.context.providers.default().engine
    }

    /// All of them, the default one first.
    pub fn engines(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.context.providers.all().map(|provider| &provider.engine)
    }

    /// The one that is named, else the default one.
    pub fn engine_named(&self, name: Option<&str>) -> Result<&Arc<dyn Engine>, OrchestratorError> {
        Ok(&self.context.providers.named(name)?.engine)
    }

    /// Of the engine that is named, else of the default one.
    pub fn images(&self, engine: Option<&str>) -> Result<Images, OrchestratorError> {
        Ok(Images::new(&self.context, self.context.providers.named(engine)?))
    }

    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    pub fn store(&self) -> &Store {
        &self.context.store
    }

    /// Sandboxes keep running; what was being made or stopped is finished first, within the
    /// stop deadline.
    pub async fn shutdown(&self) {
        shutdown::shutdown(&self.context).await;
    }

    async fn change(&self, id: &SandboxId, to: Standing) -> Result<(), OrchestratorError> {
        let sandbox = self.living(id).await?;
        let engine = sandbox.engine();
        if engine.absent().is_none() && !engine.capabilities().pause {
            let name = engine.name();
            let reason = format!("the engine {name} cannot pause sandboxes on this machine");
            return Err(OrchestratorError::Conflict(reason));
        }
        sandbox.ready().await?;
        sandbox.ask(|reply| Message::Change(to, reply)).await?
    }

    /// The sandbox, unless it is ending, has ended, or never was.
    async fn living(&self, id: &SandboxId) -> Result<SharedSandbox, OrchestratorError> {
        if let Some(sandbox) = self.context.registry.find(id) {
            return match sandbox.cause() {
                None => Ok(sandbox),
                Some(cause) => Err(sandbox.gone(cause)),
            };
        }
        match self.context.store.sandboxes().find(id).await?.and_then(|row| row.cause) {
            Some(cause) => {
                let unknown = |_| Cause::Lost { reason: "its row does not say why".to_owned() };
                let cause = serde_json::from_value(cause).unwrap_or_else(unknown);
                Err(OrchestratorError::Gone { id: id.clone(), cause })
            }
            None => Err(OrchestratorError::NotFound(id.clone())),
        }
    }
}
