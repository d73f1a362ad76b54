//! Ids from the path. One that does not parse names nothing, so it is not found.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::SandboxKey;
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

    async fn sandbox(&self, parts: &Parts, app: &App) -> ApiResult<SandboxId> {
        let id = self.get("id")?.parse().map_err(|_| ApiError::sandbox_not_found())?;
        let caller = parts.extensions.get::<Caller>().ok_or_else(ApiError::internal)?;
        if !caller.has_token && is_kept_from_strangers(app, &id) {
            return Err(ApiError::unauthorized());
        }
        // What is left of one that has ended is no more for everybody than it was itself.
        if is_bound(app, caller)
            && let Some(key) = app.orchestrator().key_of(&id).await?
            && is_hidden(app, caller, &key)
        {
            return Err(ApiError::sandbox_not_found());
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

/// Sessions in it are bound to their users; whoever has its commands has everybody's.
pub(crate) fn is_hidden(app: &App, caller: &Caller, key: &SandboxKey) -> bool {
    is_bound(app, caller) && key.as_str().starts_with(reserved_keys::WORKSPACE_UI)
}

/// Whether there is anything that is not for this caller.
pub(crate) fn is_bound(app: &App, caller: &Caller) -> bool {
    !caller.is_admin && app.settings().workspace.identity_binding
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
        let segments = Segments::from_request_parts(parts, app).await?;
        segments.sandbox(parts, app).await.map(Self)
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
        Ok(Self { sandbox: segments.sandbox(parts, app).await?, command })
    }
}
