//! Where the workspace's runner is: in a sandbox of this server, on a directory of this machine,
//! or on another machine. Nothing above this file can tell.

use std::sync::Arc;

use http::StatusCode;
use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::{NetworkMode, WorkspaceId};
use sandbank_orchestrator::{CreateRequest, OrchestratorError, SandboxKey};
use sandbank_protocol::{CommandSpec, CommandStatus, FaultCode, WORKSPACE};
use sandbank_workspace::{Place as Elsewhere, PlaceError, PlaceErrorKind};
use serde_json::Map;

use super::error::switched_off;
use crate::app::App;
use crate::config::WorkspaceMode;
use crate::dialects::reserved_keys;
use crate::dialects::sandboxd::limits;
use crate::error::{ApiError, ApiResult};
use crate::limits::{FIRST_LOOK_PAUSE, LONGEST_LOOK_PAUSE, RETRY_SOON};
use crate::terminal::{Ground, GroundError, Hold};

/// The runner, held for one request or one session.
pub(super) struct Place(Hold);

/// Why something did not happen in the workspace.
pub(super) enum Refusal {
    /// The runner's word.
    Fault(FaultCode, ApiError),
    Other(ApiError),
}

impl Place {
    /// Makes the sandbox where there is none.
    pub(super) async fn of(app: &App) -> ApiResult<Self> {
        match app.workspace_place() {
            Some(place) => Self::elsewhere(place).await,
            None => {
                Self::check(app)?;
                in_sandbox(app).await
            }
        }
    }

    async fn elsewhere(place: &Arc<dyn Elsewhere>) -> ApiResult<Self> {
        let held = place.client().await.map_err(Refusal::from)?;
        Ok(Self(Hold::Elsewhere(place.clone(), held)))
    }

    /// The one that is there already; none is made.
    pub(super) async fn existing(app: &App) -> ApiResult<Option<Self>> {
        if let Some(place) = app.workspace_place() {
            return Self::elsewhere(place).await.map(Some);
        }
        Self::check(app)?;
        let key = key(&app.settings().workspace.name);
        let Some(found) = app.orchestrator().find_key(&key).await? else { return Ok(None) };
        match app.orchestrator().attach(&found.id).await {
            Ok(attached) => Ok(Some(Self(Hold::Sandbox(attached)))),
            Err(OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is one at all.
    pub(super) fn check(app: &App) -> ApiResult<()> {
        match app.settings().workspace.mode {
            WorkspaceMode::Off => Err(switched_off()),
            WorkspaceMode::Local | WorkspaceMode::Sandbox | WorkspaceMode::Remote => Ok(()),
        }
    }

    /// For terminals, which are held for long.
    pub(super) fn ground(&self) -> Ground {
        self.0.ground()
    }

    /// Starts a program; an id that is known attaches to it.
    pub(super) async fn start(&self, spec: &CommandSpec) -> Result<CommandStatus, Refusal> {
        match &self.0 {
            Hold::Sandbox(attached) => Ok(attached.start(spec).await?.status),
            Hold::Elsewhere(..) => {
                Ok(self.run(|client| async move { client.start(spec).await }).await?.status)
            }
        }
    }

    /// Makes an idempotent call, again when the connection broke.
    pub(super) async fn run<T, F, A>(&self, call: F) -> Result<T, Refusal>
    where
        T: Send,
        F: Fn(RunnerClient) -> A + Send + Sync,
        A: Future<Output = Result<T, ChannelError>> + Send,
    {
        Ok(self.0.run(call).await?)
    }

    /// Makes a call that must not be made twice.
    pub(super) async fn once<T, F, A>(&self, call: F) -> Result<T, Refusal>
    where
        F: FnOnce(RunnerClient) -> A,
        A: Future<Output = Result<T, ChannelError>>,
    {
        match &self.0 {
            Hold::Sandbox(attached) => {
                Ok(call(RunnerClient::clone(attached)).await.map_err(OrchestratorError::from)?)
            }
            Hold::Elsewhere(_, held) => {
                Ok(call(RunnerClient::clone(held)).await.map_err(PlaceError::from)?)
            }
        }
    }
}

/// Finds the sessions that an earlier daemon left, and those that this one lost sight of: nobody may
/// ever ask for them. To be called once.
pub(crate) fn find_sessions(app: &App) {
    if Place::check(app).is_err() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let mut pause = FIRST_LOOK_PAUSE;
        loop {
            let is_done = match Place::existing(&app).await {
                Ok(Some(place)) => app.workspace_sessions().look(&app, &place).await.is_ok(),
                // Where there is no sandbox yet, there are no sessions.
                Ok(None) => true,
                Err(_) => false,
            };
            tokio::select! {
                () = tokio::time::sleep(pause), if !is_done => {
                    pause = (pause * 2).min(LONGEST_LOOK_PAUSE);
                }
                () = app.workspace_sessions().lost.notified(), if is_done => {
                    pause = FIRST_LOOK_PAUSE;
                }
                () = app.shutdown().draining() => return,
            }
        }
    });
}

pub(crate) fn place_error(error: PlaceError) -> ApiError {
    Refusal::from(error).into()
}

/// As tokens name it.
pub(super) fn name(app: &App) -> &str {
    app.settings().workspace.name.as_str()
}

/// As programs in the workspace see it; empty as long as nobody can tell.
pub(super) async fn root(app: &App) -> String {
    match app.workspace_place() {
        Some(place) => place.root().await.unwrap_or_default(),
        None => WORKSPACE.to_owned(),
    }
}

fn key(name: &WorkspaceId) -> SandboxKey {
    let key = format!("{}{name}", reserved_keys::WORKSPACE_UI);
    key.parse().expect("the name of a workspace is part of a key")
}

async fn in_sandbox(app: &App) -> ApiResult<Place> {
    let settings = app.settings();
    let engine = app.orchestrator().engine_named(None)?;
    let limits = limits(&Map::new(), &settings.sandboxes, engine.capabilities().disk_quota)?;
    let request = CreateRequest {
        key: key(&settings.workspace.name),
        engine: None,
        image: match &settings.workspace.image {
            Some(image) => image.clone(),
            None => settings.default_image(engine.name()).clone(),
        },
        runtime: "workspace".to_owned(),
        idle_ttl: None,
        max_lifetime: None,
        limits,
        network: NetworkMode::None,
        ports: Vec::new(),
        env: Default::default(),
        workspace: Some(settings.workspace.name.clone()),
    };
    let made = app.orchestrator().create(request).await?;
    Ok(Place(Hold::Sandbox(app.orchestrator().attach(&made.id).await?)))
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Fault(_, error) | Refusal::Other(error) => error,
        }
    }
}

impl From<GroundError> for Refusal {
    fn from(error: GroundError) -> Self {
        match error {
            GroundError::Sandbox(error) => error.into(),
            GroundError::Elsewhere(error) => error.into(),
        }
    }
}

impl From<OrchestratorError> for Refusal {
    fn from(error: OrchestratorError) -> Self {
        let code = match &error {
            OrchestratorError::Channel(inner) => fault_code(inner),
            _ => None,
        };
        match code {
            Some(code) => Self::Fault(code, error.into()),
            None => Self::Other(error.into()),
        }
    }
}

impl From<PlaceError> for Refusal {
    fn from(error: PlaceError) -> Self {
        if let PlaceError::Channel(inner) = &error
            && let Some(code) = fault_code(inner)
        {
            return Self::Fault(code, ApiError::from(&**inner));
        }
        tracing::warn!(kind = error.kind().name(), %error, "the workspace is not to be had");
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        // What the other machine says is for the log; callers get the kind of it.
        let message = format!("Workspace unavailable: {}", error.kind().name());
        let refused =
            ApiError::new(status, "workspace_unavailable", message).with_hint(error.next_step());
        Self::Other(match error.kind() {
            PlaceErrorKind::Unreachable
            | PlaceErrorKind::BreakerOpen
            | PlaceErrorKind::TimedOut => {
                ApiError { retryable: true, retry_after: Some(RETRY_SOON), ..refused }
            }
            _ => refused,
        })
    }
}

fn fault_code(error: &ChannelError) -> Option<FaultCode> {
    match error {
        ChannelError::Refused(fault) => Some(fault.code),
        _ => None,
    }
}
