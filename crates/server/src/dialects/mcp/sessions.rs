//! The sessions of MCP clients: whose each is, which tools it has, what it is doing.
//!
//! A session is known by an id that nobody can guess, and only to the token that began it. They are
//! few, and those that nobody uses are forgotten; the sandbox of one has its own time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_tools::Toolbox;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::version::Version;
use crate::limits::{MAX_MCP_CALLS, MAX_MCP_SESSIONS, MAX_MCP_SESSIONS_OF_ONE, MCP_SESSION_IDLE};
use crate::request::random_id;

#[derive(Default)]
pub(crate) struct McpSessions(Mutex<HashMap<String, Arc<Session>>>);

pub(super) struct Session {
    pub(super) id: String,
    caller: Arc<str>,
    pub(super) version: Version,
    /// The key of its sandbox.
    pub(super) sandbox: String,
    /// Whether the sandbox ends with the session.
    pub(super) temporary: bool,
    pub(super) toolbox: Arc<dyn Toolbox>,
    state: Mutex<State>,
}

struct State {
    last: Instant,
    /// No call begins any more: what still comes, as the rest of a batch, finds nothing to be done in.
    ended: bool,
    /// By the id of the request, as JSON.
    calls: HashMap<String, CancellationToken>,
}

/// What a session is made of.
pub(super) struct NewSession {
    pub(super) caller: Arc<str>,
    pub(super) version: Version,
    pub(super) sandbox: String,
    pub(super) temporary: bool,
    pub(super) toolbox: Arc<dyn Toolbox>,
}

/// Why there is no further session or call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl McpSessions {
    /// Forgets those that nobody used for long, and gives them.
    pub(super) fn expired(&self) -> Vec<Arc<Session>> {
        let mut sessions = self.lock();
        let over = sessions.extract_if(|_, session| session.is_over());
        over.map(|(_, session)| session).inspect(|session| session.end()).collect()
    }

    /// In the place of the one that this caller has not used for longest, if need be, which is given,
    /// too.
    pub(super) fn begin(
        &self,
        new: NewSession,
    ) -> Result<(Arc<Session>, Option<Arc<Session>>), Full> {
        let NewSession { caller, version, sandbox, temporary, toolbox } = new;
        let mut sessions = self.lock();
        let mut evicted = None;
        let own = sessions.values().filter(|session| session.caller == caller);
        if own.count() >= MAX_MCP_SESSIONS_OF_ONE || sessions.len() >= MAX_MCP_SESSIONS {
            let idle = sessions.values().filter(|session| session.caller == caller);
            let idle = idle.filter_map(|session| Some((session.idle_since()?, session.id.clone())));
            let (_, id) = idle.min().ok_or(Full)?;
            evicted = sessions.remove(&id).inspect(|session| session.end());
        }
        let state = State { last: Instant::now(), ended: false, calls: HashMap::new() };
        let session = Arc::new(Session {
            id: format!("{}{}", random_id(), random_id()),
            caller,
            version,
            sandbox,
            temporary,
            toolbox,
            state: Mutex::new(state),
        });
        sessions.insert(session.id.clone(), session.clone());
        Ok((session, evicted))
    }

    /// One of this caller's, which is used now.
    pub(super) fn find(&self, id: &str, caller: &str) -> Option<Arc<Session>> {
        let sessions = self.lock();
        let session = sessions.get(id).filter(|session| &*session.caller == caller)?;
        if session.is_over() {
            return None;
        }
        session.state().last = Instant::now();
        Some(session.clone())
    }

    /// What it is doing is ended with it.
    pub(super) fn end(&self, id: &str, caller: &str) -> Option<Arc<Session>> {
        let session = self.find(id, caller)?;
        self.lock().remove(id);
        session.end();
        Some(session)
    }

    /// Whether another session has this sandbox.
    pub(super) fn shares(&self, sandbox: &str) -> bool {
        self.lock().values().any(|session| session.sandbox == sandbox && !session.is_over())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while it does something.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.calls.is_empty().then_some(state.last)
    }

    fn is_over(&self) -> bool {
        self.idle_since().is_some_and(|last| last.elapsed() >= MCP_SESSION_IDLE)
    }

    fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.calls.values().for_each(CancellationToken::cancel);
    }

    /// None where the same id is in use, or too many are, or the session has ended.
    pub(super) fn call(self: &Arc<Self>, id: &Value) -> Option<Call> {
        let (id, cancel) = (id.to_string(), CancellationToken::new());
        let mut state = self.state();
        if state.ended || state.calls.len() >= MAX_MCP_CALLS || state.calls.contains_key(&id) {
            return None;
        }
        state.calls.insert(id.clone(), cancel.clone());
        drop(state);
        Some(Call { session: self.clone(), id, cancel })
    }

    /// Nothing happens where there is no such call, or no longer.
    pub(super) fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.state().calls.get(&id.to_string()) {
            cancel.cancel();
        }
    }
}

/// A call that runs; it is known for as long as this lives, and ended with it.
pub(super) struct Call {
    session: Arc<Session>,
    id: String,
    pub(super) cancel: CancellationToken,
}

impl Call {
    pub(super) fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.session.toolbox
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel.cancel();
        let mut state = self.session.state();
        state.calls.remove(&self.id);
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use sandbank_tools::{Tool, ToolError, Updates};
    use serde_json::json;

    use super::*;

    struct Nothing;

    #[async_trait]
    impl Toolbox for Nothing {
        fn tools(&self) -> Vec<Tool> {
            Vec::new()
        }

        async fn call(
            &self,
            name: &str,
            _input: Value,
            _cancel: CancellationToken,
        ) -> Result<Updates, ToolError> {
            Err(ToolError::UnknownTool(name.to_owned()))
        }

        async fn call_quietly(
            &self,
            name: &str,
            input: Value,
            cancel: CancellationToken,
        ) -> Result<Updates, ToolError> {
            self.call(name, input, cancel).await
        }
    }

    fn begin(sessions: &McpSessions, caller: &str) -> Result<Arc<Session>, Full> {
        begin_and_evict(sessions, caller).map(|(session, _)| session)
    }

    fn begin_and_evict(
        sessions: &McpSessions,
        caller: &str,
    ) -> Result<(Arc<Session>, Option<Arc<Session>>), Full> {
        sessions.begin(NewSession {
            caller: caller.into(),
            version: Version::agreed(""),
            sandbox: "x".to_owned(),
            temporary: true,
            toolbox: Arc::new(Nothing),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_its_callers_alone_and_ends_when_nobody_uses_it() {
        let sessions = McpSessions::default();
        let id = begin(&sessions, "a").unwrap().id.clone();
        assert!(id.len() >= 40, "{id}");
        assert!(sessions.find(&id, "b").is_none() && sessions.end(&id, "b").is_none());
        tokio::time::advance(MCP_SESSION_IDLE - Duration::from_secs(1)).await;
        let session = sessions.find(&id, "a").expect("it was used in time");
        let call = session.call(&json!(1)).unwrap();
        tokio::time::advance(MCP_SESSION_IDLE * 2).await;
        assert!(sessions.find(&id, "a").is_some(), "it is busy");
        drop(call);
        tokio::time::advance(MCP_SESSION_IDLE).await;
        assert!(sessions.find(&id, "a").is_none());
        // Whoever ends its sandbox is told of it once.
        let expired: Vec<_> = sessions.expired().iter().map(|session| session.id.clone()).collect();
        assert_eq!(expired, [id]);
        assert!(session.call(&json!(2)).is_none(), "its sandbox is ended");
        assert!(sessions.expired().is_empty() && !sessions.shares("x"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_takes_no_place_of_another_and_the_busy_keep_theirs() {
        let sessions = McpSessions::default();
        let other = begin(&sessions, "other").unwrap().id.clone();
        let first = begin(&sessions, "a").unwrap();
        let call = first.call(&json!("x")).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = begin(&sessions, "a").unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let mut evicted = Vec::new();
        for _ in 2..=MAX_MCP_SESSIONS_OF_ONE {
            evicted.extend(begin_and_evict(&sessions, "a").unwrap().1);
        }
        assert_eq!(evicted.iter().map(|session| &session.id).collect::<Vec<_>>(), [&second.id]);
        assert!(sessions.find(&other, "other").is_some());
        assert!(sessions.find(&first.id, "a").is_some(), "it is busy");
        assert!(sessions.find(&second.id, "a").is_none(), "it was used least");
        assert!(second.call(&json!(1)).is_none(), "its sandbox is ended");
        drop(call);
    }

    #[tokio::test]
    async fn calls_are_cancelled_by_id_with_their_session_and_with_whoever_waits() {
        let sessions = McpSessions::default();
        let session = begin(&sessions, "a").unwrap();
        let (one, text) = (session.call(&json!(1)).unwrap(), session.call(&json!("1")).unwrap());
        assert!(session.call(&json!(1)).is_none(), "the id is in use");
        session.cancel(&json!(2));
        assert!(!one.cancel.is_cancelled());
        session.cancel(&json!(1));
        assert!(one.cancel.is_cancelled() && !text.cancel.is_cancelled());
        drop(one);
        assert!(session.call(&json!(1)).is_some());
        sessions.end(&session.id, "a").unwrap();
        assert!(text.cancel.is_cancelled());
        assert!(session.call(&json!(2)).is_none(), "the session has ended");
    }
}
