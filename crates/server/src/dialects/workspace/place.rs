//! Where the workspace's runner is: in a sandbox of this server.

use sandbank_channel::{ChannelError, RunnerClient};
use sandbank_engine::{NetworkMode, WorkspaceId};
use sandbank_orchestrator::{Attached, CreateRequest, OrchestratorError, SandboxKey};
use sandbank_protocol::{FaultCode, WORKSPACE};
use serde_json::Map;

use super::error::switched_off;
use crate::app::App;
use crate::config::WorkspaceMode;
use crate::dialects::reserved_keys;
use crate::dialects::sandboxd::limits;
use crate::error::{ApiError, ApiResult};

/// The runner, held for one request.
pub(super) struct Place {
    attached: Attached,
}

/// Why something did not happen in the workspace.
pub(super) enum Refusal {
    /// The runner's word.
    Fault(FaultCode, ApiError),
    Other(ApiError),
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Fault(_, error) | Refusal::Other(error) => error,
        }
    }
}

impl From<OrchestratorError> for Refusal {
    fn from(error: OrchestratorError) -> Self {
        let code = match &error {
            OrchestratorError::Channel(inner) => match &**inner {
                ChannelError::Refused(fault) => Some(fault.code),
                _ => None,
            },
            _ => None,
        };
        match code {
            Some(code) => Self::Fault(code, error.into()),
            None => Self::Other(error.into()),
        }
    }
}

impl Place {
    /// Makes the sandbox where there is none.
    pub(super) async fn of(app: &App) -> ApiResult<Self> {
        match app.settings().workspace.mode {
            WorkspaceMode::Off => Err(switched_off()),
            WorkspaceMode::Sandbox => in_sandbox(app).await,
        }
    }

    /// Makes an idempotent call, once more when the connection broke.
    pub(super) async fn run<T, F, A>(&self, call: F) -> Result<T, Refusal>
    where
        F: Fn(RunnerClient) -> A,
        A: Future<Output = Result<T, ChannelError>>,
    {
        Ok(self.attached.run(call).await?)
    }

    /// Makes a call that must not be made twice.
    pub(super) async fn once<T, F, A>(&self, call: F) -> Result<T, Refusal>
    where
        F: FnOnce(RunnerClient) -> A,
        A: Future<Output = Result<T, ChannelError>>,
    {
        let client = RunnerClient::clone(&self.attached);
        Ok(call(client).await.map_err(OrchestratorError::from)?)
    }
}

/// As programs in the workspace see it.
pub(super) fn root(_app: &App) -> &str {
    WORKSPACE
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
    Ok(Place { attached: app.orchestrator().attach(&made.id).await? })
}
