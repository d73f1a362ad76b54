//! Ids from the path. One that does not parse names nothing, so it is not found.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use sandbank_engine::SandboxId;
use sandbank_protocol::CommandId;

use crate::app::App;
use crate::auth::Caller;
use crate::dialects::reserved_keys;
use crate::error::{ApiError, ApiResult};

/// The decoded path segments by their name in the route.
pub(crate) struct Segments(RawPathParams);

impl Segments {
    pub(crate) fn get(&self, name: &str) -> ApiResult<&str> {
        let found = self.0.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value).ok_or_else(ApiError::route_not_found)
    }

    fn sandbox(&self, parts: &Parts, app: &App) -> ApiResult<SandboxId> {
        let id = self.get("id")?.parse().map_err(|_| ApiError::sandbox_not_found())?;
        let caller = parts.extensions.get::<Caller>().ok_or_else(ApiError::internal)?;
        if !caller.has_token && is_kept_from_strangers(app, &id) {
            return Err(ApiError::unauthorized());
        }
        Ok(id)
    }
}

/// What a session or a kept workspace is behind is not for everybody who can reach the port, whatever
/// way they learnt the sandbox's id.
fn is_kept_from_strangers(app: &App, id: &SandboxId) -> bool {
    let Some((key, workspace)) = app.orchestrator().ownership(id) else { return false };
    workspace.is_some() || reserved_keys::is_reserved(&key)
}

impl FromRequestParts<App> for Segments {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let segments = RawPathParams::from_request_parts(parts, app).await;
        segments.map(Self).map_err(|_| ApiError::bad_request("bad_path", "the path is not UTF-8"))
    }
}

/// `/v1/sandboxes/{id}…`
pub(crate) struct SandboxPath(pub(crate) SandboxId);

impl FromRequestParts<App> for SandboxPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Segments::from_request_parts(parts, app).await?.sandbox(parts, app).map(Self)
    }
}

/// `/v1/sandboxes/{id}/commands/{commandId}…`
#[derive(Debug, Clone)]
pub(crate) struct CommandPath {
    pub(crate) sandbox: SandboxId,
    pub(crate) command: CommandId,
}

impl FromRequestParts<App> for CommandPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let segments = Segments::from_request_parts(parts, app).await?;
        let command = segments.get("commandId")?.parse();
        let command = command.map_err(|_| ApiError::not_found("command_not_found"))?;
        Ok(Self { sandbox: segments.sandbox(parts, app)?, command })
    }
}
