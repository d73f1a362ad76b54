//! All of it put together: what a server needs to offer tools.

use std::sync::Arc;

use crate::approval::{AlwaysYes, Approver, Desk};
use crate::counted::{Counted, Tally};
use crate::gates::{Caller, Closed, Gates};
use crate::limits::MAX_SESSION_CHARS;
use crate::seed::Seed;
use crate::sessions::Sessions;
use crate::tools::{SessionToolbox, Surface};
use crate::{Config, Provider, ToolError, Toolbox};

/// The tools of one server. Cheap to clone.
#[derive(Clone)]
pub struct Tools {
    shared: Arc<Shared>,
    gates: Arc<Gates>,
    desk: Option<Arc<Desk>>,
    /// By the code of the gate that was closed.
    refusals: Arc<Tally<&'static str>>,
}

/// What calls need.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) approver: Arc<dyn Approver>,
    /// By tool and outcome.
    pub(crate) calls: Tally<(&'static str, &'static str)>,
}

impl Tools {
    /// Where nobody is asked and workspaces begin empty.
    pub fn new(config: Config, provider: Arc<dyn Provider>) -> Self {
        Self::with(config, provider, None, Arc::new(AlwaysYes))
    }

    pub fn with(
        config: Config,
        provider: Arc<dyn Provider>,
        seed: Option<Arc<dyn Seed>>,
        approver: Arc<dyn Approver>,
    ) -> Self {
        let gates = Arc::new(Gates::new(&config, provider.clone()));
        let sessions = Arc::new(Sessions::new(&config, provider, seed));
        let shared = Arc::new(Shared { config, sessions, approver, calls: Tally::default() });
        Self { shared, gates, desk: None, refusals: Arc::default() }
    }

    /// Where calls wait for a person.
    #[must_use]
    pub fn with_desk(mut self, desk: Arc<Desk>) -> Self {
        self.desk = Some(desk);
        self
    }

    pub fn desk(&self) -> Option<&Arc<Desk>> {
        self.desk.as_ref()
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// What was switched off in so many words. To be asked for callers who need no switch on, because
    /// their token opens sandboxes anyway.
    pub fn switched_off(&self) -> Option<&Closed> {
        self.shared.config.switched_off.as_ref()
    }

    /// Whether this caller has tools, or why not. To be asked before anything else, each time, for
    /// all others.
    pub async fn admit(&self, caller: &Caller) -> Result<(), Closed> {
        let passed = self.gates.pass(caller).await;
        if let Err(closed) = &passed {
            self.refusals.add(closed.code(), 1);
        }
        passed
    }

    pub fn counted(&self) -> Counted {
        let desk = self.desk.as_ref();
        Counted {
            calls: self.shared.calls.read(),
            refusals: self.refusals.read(),
            sessions: self.shared.sessions.count(),
            seeds: self.shared.sessions.seeds.read(),
            approvals: desk.map(|desk| desk.ended.read()).unwrap_or_default(),
            approvals_waiting: desk.map_or(0, |desk| desk.count_waiting()),
        }
    }

    /// What a session may use. Nothing is opened before it is used.
    pub fn toolbox(
        &self,
        session: &str,
        surface: Surface,
        host: Option<&str>,
    ) -> Result<Arc<dyn Toolbox>, ToolError> {
        let session = named(session)?;
        let (shared, host) = (self.shared.clone(), host.map(str::to_owned));
        Ok(Arc::new(SessionToolbox { shared, session: session.into(), surface, host }))
    }

    /// Opens the session's sandbox ahead of its first use.
    pub fn prewarm(&self, session: &str) -> Result<(), ToolError> {
        self.shared.sessions.prewarm(named(session)?);
        Ok(())
    }

    /// Ends the session's sandbox with all that is in it; the next call has a new one.
    pub async fn reset(&self, session: &str) -> Result<(), ToolError> {
        self.shared.sessions.reset(named(session)?).await
    }
}

/// Trimmed, and such that it can be part of a sandbox's key.
fn named(session: &str) -> Result<&str, ToolError> {
    let session = session.trim();
    let fits = (1..=MAX_SESSION_CHARS).contains(&session.chars().count());
    if fits && !session.chars().any(char::is_control) {
        return Ok(session);
    }
    Err(ToolError::InvalidInput(format!(
        "the session's name must have 1 to {MAX_SESSION_CHARS} characters, none of them a control \
         character"
    )))
}
