//! One sandbox as the rest of the daemon holds it: its unchanging facts, a mailbox to the task
//! that owns its state, and a view of that state.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use sandbank_engine::{Engine, ImageName, Limits, NetworkMode, SandboxId, WorkspaceId};
use sandbank_protocol::CommandStatus;
use sandbank_store::SandboxRow;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::clock::{Clock, wall_of};
use crate::collect::Collected;
use crate::lifecycle::{Event, Phase, Standing, State};
use crate::limits::{DEATH_NOTICE, FRESH_LOOK};
use crate::link::{Channel, Link};
use crate::ports::PortTable;
use crate::provider::Provider;
use crate::scripts::Scripts;
use crate::{AcquireSource, Cause, OrchestratorError, SandboxInfo, SandboxKey, SandboxState};

pub(crate) struct Sandbox {
    pub(crate) facts: Facts,
    /// The engine its machine is of.
    pub(crate) provider: Arc<Provider>,
    pub(crate) link: Link,
    pub(crate) ports: PortTable,
    /// Set when it has a machine that was not there before the daemon.
    pub(crate) source: OnceLock<AcquireSource>,
    /// Its kept workspace was not there when its machine was about to be made.
    pub(crate) makes_workspace: AtomicBool,
    pub(crate) scripts: Scripts,
    pub(crate) mailbox: mpsc::UnboundedSender<Message>,
    pub(crate) view: watch::Receiver<View>,
}

/// What never changes.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) id: SandboxId,
    pub(crate) key: SandboxKey,
    pub(crate) engine: String,
    pub(crate) image: ImageName,
    pub(crate) runtime: String,
    pub(crate) network: NetworkMode,
    pub(crate) limits: Limits,
    pub(crate) ports: Vec<u16>,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) created_at_ms: u64,
}

/// The owning task's state as of its last decision.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) state: State,
    /// Why it could not be made, for everybody who waited for it.
    pub(crate) failure: Option<OrchestratorError>,
}

pub(crate) enum Message {
    Event(Event),
    /// Refused with the reason, or counted as a holder.
    Open(oneshot::Sender<Result<Hold, OrchestratorError>>),
    /// Answered when it is known how busy the sandbox is.
    Look(oneshot::Sender<()>),
    /// True when this request stops it; the sandbox is then on its way out.
    Evict(oneshot::Sender<bool>),
    Change(Standing, oneshot::Sender<Result<(), OrchestratorError>>),
    ChangeFailed(OrchestratorError),
    CreateFailed(OrchestratorError),
    /// It may have ended already.
    CommandStarted(Box<CommandStatus>),
    /// The runner is not the one that was last reached.
    RunnerRestarted,
    Collected(Box<Collected>),
    /// The daemon goes; the sandbox stays.
    Leave(oneshot::Sender<()>),
}

/// Counts as a user of the sandbox until it is dropped. Made by the task that counts, so that a
/// caller who goes away at any moment is counted out again.
pub(crate) struct Hold {
    pub(crate) mailbox: mpsc::UnboundedSender<Message>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.mailbox.send(Message::Event(Event::Closed));
    }
}

impl Sandbox {
    pub(crate) fn id(&self) -> &SandboxId {
        &self.facts.id
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.provider.engine
    }

    pub(crate) fn send(&self, event: Event) {
        let _ = self.mailbox.send(Message::Event(event));
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.view.borrow().state.cause().cloned()
    }

    pub(crate) fn gone(&self, cause: Cause) -> OrchestratorError {
        OrchestratorError::Gone { id: self.facts.id.clone(), cause }
    }

    /// Sends a message that is answered; the task being gone is an answer, too.
    pub(crate) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, OrchestratorError> {
        let (reply, answer) = oneshot::channel();
        let asked = self.mailbox.send(message(reply)).is_ok();
        match answer.await {
            Ok(answer) if asked => Ok(answer),
            _ => Err(self.cause().map_or(OrchestratorError::ShuttingDown, |c| self.gone(c))),
        }
    }

    /// Resolves when it is no longer being created, with the error everybody gets if that failed.
    pub(crate) async fn ready(&self) -> Result<(), OrchestratorError> {
        let mut view = self.view.clone();
        let made = view.wait_for(|view| !matches!(view.state.phase, Phase::Creating { .. })).await;
        match made {
            Ok(view) => view.failure.clone().map_or(Ok(()), Err),
            Err(_) => Err(OrchestratorError::ShuttingDown),
        }
    }

    pub(crate) async fn hold(&self) -> Result<Hold, OrchestratorError> {
        self.ready().await?;
        self.ask(Message::Open).await?
    }

    /// Resolves when it is ending or has ended.
    pub(crate) async fn ending(&self) -> Cause {
        let mut view = self.view.clone();
        let seen = view.wait_for(|view| view.state.cause().is_some()).await;
        match seen.ok().and_then(|view| view.state.cause().cloned()) {
            Some(cause) => cause,
            // The daemon leaves: nobody will ever know more.
            None => std::future::pending().await,
        }
    }

    pub(crate) async fn ended(&self) {
        let _ = self.view.clone().wait_for(|view| view.state.is_ended()).await;
    }

    /// A channel newer than `broken`. When there is none to be had because the sandbox has just
    /// died, the answer says so.
    pub(crate) async fn channel_after(&self, broken: u64) -> Result<Channel, OrchestratorError> {
        let error = match self.link.channel_after(broken).await {
            Ok(channel) => return Ok(channel),
            Err(error) => error,
        };
        if let Ok(cause) = timeout(DEATH_NOTICE, self.ending()).await {
            return Err(self.gone(cause));
        }
        if error.code() == "sandbox_gone" {
            // The engine knows nothing of it, and nobody was told of its death.
            self.send(Event::Vanished { reason: error.to_string() });
            if let Ok(cause) = timeout(DEATH_NOTICE, self.ending()).await {
                return Err(self.gone(cause));
            }
        }
        Err(error)
    }

    /// Asks the sandbox itself how busy it is, if there is any doubt.
    pub(crate) async fn refresh(&self) {
        let _ = timeout(FRESH_LOOK, self.ask(Message::Look)).await;
    }

    pub(crate) fn info(&self, clock: &dyn Clock) -> SandboxInfo {
        let state = self.view.borrow().state.clone();
        let visible = state.visible();
        let lease = &state.lease;
        let alive = matches!(visible, SandboxState::Running | SandboxState::Paused);
        let busy = alive && lease.is_busy();
        let expires_at = (alive && !busy).then(|| wall_of(clock, lease.idle_deadline()));
        let active_until = lease.active_until(clock.boot_ms());
        SandboxInfo {
            state: visible,
            reason: state.cause().map(Cause::to_string),
            cause: state.cause().cloned(),
            published: self.ports.published(),
            last_active_at_ms: wall_of(clock, active_until),
            idle_ttl_ms: u64::try_from(lease.idle_ttl).unwrap_or(0),
            expires_at_ms: expires_at,
            ends_at_ms: lease.ends_at.map(|end| wall_of(clock, end)),
            busy,
            commands_running: if alive { lease.commands } else { 0 },
            ..self.facts.bare_info()
        }
    }
}

impl Facts {
    pub(crate) fn from_row(row: &SandboxRow) -> Result<Self, OrchestratorError> {
        let key = row.key.parse().map_err(|error| {
            OrchestratorError::Internal(format!("the key of {} in the store: {error}", row.id))
        })?;
        Ok(Self {
            id: row.id.clone(),
            key,
            engine: row.engine.clone(),
            image: row.image.clone(),
            runtime: row.runtime.clone(),
            network: row.network,
            limits: row.limits.clone(),
            ports: row.ports.clone(),
            workspace: row.workspace.clone(),
            created_at_ms: row.created_at_ms,
        })
    }

    fn bare_info(&self) -> SandboxInfo {
        SandboxInfo {
            id: self.id.clone(),
            key: self.key.clone(),
            state: SandboxState::Gone,
            reason: None,
            cause: None,
            engine: self.engine.clone(),
            image: self.image.clone(),
            runtime: self.runtime.clone(),
            network: self.network,
            limits: self.limits.clone(),
            ports: self.ports.clone(),
            published: Vec::new(),
            workspace: self.workspace.clone(),
            created_at_ms: self.created_at_ms,
            last_active_at_ms: self.created_at_ms,
            idle_ttl_ms: 0,
            expires_at_ms: None,
            ends_at_ms: None,
            busy: false,
            commands_running: 0,
        }
    }

    /// A sandbox that has ended, from what its row says.
    pub(crate) fn closed_info(&self, row: &SandboxRow, cause: &Cause) -> SandboxInfo {
        SandboxInfo {
            state: cause.end_state(),
            reason: Some(cause.to_string()),
            cause: Some(cause.clone()),
            last_active_at_ms: row.lease.last_active.wall_ms,
            idle_ttl_ms: row.lease.idle_ttl_ms,
            ends_at_ms: row.closed_at_ms,
            ..self.bare_info()
        }
    }
}

pub(crate) type SharedSandbox = Arc<Sandbox>;
