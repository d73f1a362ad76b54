//! What every handler can reach, and how the pieces become one service.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use bytes::Bytes;
use http::Uri;
use sandbank_chat::{Model, ModelSettings};
use sandbank_orchestrator::Orchestrator;
use sandbank_store::Store;
use sandbank_tools::Tools;
use sandbank_workspace::Place;

use crate::auth::{self, Gate};
use crate::config::{Secret, Settings};
use crate::data_dir_health::DataDirHealth;
use crate::dialects::{Dialect, McpSessions, Measured, WorkspaceSessions};
use crate::error::ApiError;
use crate::images::ImageNames;
use crate::limits::WAIT_SILENCE;
use crate::readiness::Readiness;
use crate::shutdown::Shutdown;
use crate::streams::Streams;
use crate::{dialects, openapi, request};

/// The HTTP side of a daemon. Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    orchestrator: Orchestrator,
    settings: Settings,
    data_dir: DataDirHealth,
    readiness: Readiness,
    gate: Arc<Gate>,
    streams: Streams,
    images: ImageNames,
    workspace_sessions: WorkspaceSessions,
    workspace_measured: Measured,
    tools: Tools,
    mcp_sessions: McpSessions,
    chat_model: Option<Arc<Model>>,
    /// Where the workspace is, if not in a sandbox.
    workspace_place: Option<Arc<dyn Place>>,
    shutdown: Shutdown,
    wait_silence: Duration,
}

impl App {
    /// `token` is the admin token of the data directory ([`crate::TokenFile`]); scoped ones are
    /// in the store.
    pub fn new(
        orchestrator: Orchestrator,
        store: Store,
        settings: Settings,
        token: &Secret,
    ) -> Self {
        let access = dialects::routes(openapi::base()).access;
        let tools = dialects::build_tools(&orchestrator, &store, &settings);
        let inner = Inner {
            tools,
            data_dir: DataDirHealth::new(settings.data_dir.clone()),
            readiness: Readiness::default(),
            gate: Arc::new(Gate::new(&settings, token, store.clone(), access)),
            streams: Streams::new(settings.server.max_streams),
            images: ImageNames::default(),
            workspace_sessions: WorkspaceSessions::new(
                &session_secrets(&settings, token),
                &settings.workspace,
                store,
            ),
            workspace_measured: Measured::default(),
            mcp_sessions: McpSessions::default(),
            chat_model: settings.chat.as_ref().and_then(chat_model),
            workspace_place: None,
            shutdown: Shutdown::default(),
            wait_silence: WAIT_SILENCE,
            orchestrator,
            settings,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Of `/api` and `/ws`, where it is not in a sandbox.
    #[must_use]
    pub fn with_workspace(mut self, place: Arc<dyn Place>) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("an app is shared only once it serves");
        inner.workspace_place = Some(place);
        self
    }

    /// For tests: how long a wait keeps its headers back.
    #[doc(hidden)]
    #[must_use]
    pub fn with_wait_silence(mut self, silence: Duration) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("an app is shared only once it serves");
        inner.wait_silence = silence;
        self
    }

    /// Ends [`crate::serve`]: the caller decides on which signal.
    pub fn shutdown(&self) -> &Shutdown {
        &self.inner.shutdown
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn data_dir(&self) -> &DataDirHealth {
        &self.inner.data_dir
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.inner.readiness
    }

    pub(crate) fn wait_silence(&self) -> Duration {
        self.inner.wait_silence
    }

    pub(crate) fn orchestrator(&self) -> &Orchestrator {
        &self.inner.orchestrator
    }

    /// What is open with it ends.
    pub(crate) fn token_was_revoked(&self, name: &str) {
        self.inner.gate.revocations.revoked(name);
    }

    pub(crate) fn store(&self) -> &Store {
        self.inner.gate.tokens.store()
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    pub(crate) fn images(&self) -> &ImageNames {
        &self.inner.images
    }

    pub(crate) fn workspace_sessions(&self) -> &WorkspaceSessions {
        &self.inner.workspace_sessions
    }

    pub(crate) fn workspace_measured(&self) -> &Measured {
        &self.inner.workspace_measured
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.inner.tools
    }

    pub(crate) fn mcp_sessions(&self) -> &McpSessions {
        &self.inner.mcp_sessions
    }

    /// Whom `/api/chat` is with.
    pub(crate) fn chat_model(&self) -> Option<&Arc<Model>> {
        self.inner.chat_model.as_ref()
    }

    pub(crate) fn workspace_place(&self) -> Option<&Arc<dyn Place>> {
        self.inner.workspace_place.as_ref()
    }

    pub(crate) fn router(&self) -> Router {
        let not_found = || async { ApiError::route_not_found() };
        let other_method = |uri: Uri| async move { Dialect::of(uri.path()).method_not_allowed() };
        dialects::routes(openapi::base())
            .router
            .fallback(not_found)
            .method_not_allowed_fallback(other_method)
            .layer(from_fn_with_state(self.clone(), dialects::measure))
            .layer(from_fn_with_state(self.inner.gate.clone(), auth::pass))
            .layer(from_fn(request::identify))
            .with_state(self.clone())
    }
}

/// Where none is configured, one that follows from the data directory's token: it outlives the
/// daemon as that does, and does not tell it.
fn session_secrets(settings: &Settings, token: &Secret) -> Vec<Secret> {
    let configured = &settings.workspace.session_secrets;
    if !configured.is_empty() {
        return configured.clone();
    }
    let own = ["names of terminals and chats", token.expose()].join(":");
    vec![Secret::new(sandbank_engine::sha256_hex(own.as_bytes()))]
}

/// None where this machine cannot reach it at all.
fn chat_model(settings: &ModelSettings) -> Option<Arc<Model>> {
    match Model::new(settings.clone()) {
        Ok(model) => Some(Arc::new(model)),
        Err(error) => {
            tracing::error!(%error, "there is no chat: this machine has no certificates to know servers by");
            None
        }
    }
}

/// The OpenAPI document as it is served and committed.
pub(crate) fn openapi_json() -> &'static Bytes {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let api = dialects::routes(openapi::base()).api;
        let mut json = api.to_pretty_json().expect("the document is plain data");
        json.push('\n');
        json.into()
    })
}
