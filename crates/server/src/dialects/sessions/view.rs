//! Sessions as these clients see them.

use sandbank_orchestrator::{Cause, SandboxInfo, SandboxState};
use serde::Serialize;
use utoipa::ToSchema;

use super::id::SessionId;
use crate::unix_time::now_ms;
use crate::unix_time::rfc3339;

/// Times are RFC 3339 in UTC.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionView {
    id: String,
    /// As the caller wrote it.
    image: String,
    /// `running`, `destroying`, `destroyed`, `expired` or `crashed`.
    status: &'static str,
    /// Where its shell was after its last script; empty when nobody can say: the session has ended,
    /// or does not answer.
    cwd: String,
    /// `pool` or `cold`; only in the answer to a create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) acquire_source: Option<&'static str>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) acquire_detail: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
    created_at: String,
    /// When it ends if nobody uses it: each use sets it to that moment plus the session's own TTL.
    expires_at: String,
    last_activity: String,
}

impl SessionView {
    pub(super) fn new(id: &SessionId, info: &SandboxInfo, cwd: String) -> Self {
        let busy_until = || now_ms().saturating_add(info.idle_ttl_ms);
        let last_use = info.last_active_at_ms.saturating_add(info.idle_ttl_ms);
        let idle_end = match info.expires_at_ms {
            Some(at) => at,
            None if info.busy => busy_until(),
            None => last_use,
        };
        let living_end = info.ends_at_ms.filter(|_| !info.state.is_over());
        Self {
            id: id.to_string(),
            image: info.runtime.clone(),
            status: status(info),
            cwd,
            acquire_source: None,
            acquire_detail: None,
            workspace_id: info.workspace.as_ref().map(ToString::to_string),
            created_at: rfc3339(info.created_at_ms),
            expires_at: rfc3339(living_end.map_or(idle_end, |end| end.min(idle_end))),
            last_activity: rfc3339(info.last_active_at_ms),
        }
    }
}

fn status(info: &SandboxInfo) -> &'static str {
    match (info.state, &info.cause) {
        (SandboxState::Creating | SandboxState::Running | SandboxState::Paused, _) => "running",
        (_, Some(Cause::IdleExpired | Cause::LifetimeExpired)) => "expired",
        (SandboxState::Stopping, _) => "destroying",
        (SandboxState::Gone, _) => "destroyed",
        (SandboxState::Failed, _) => "crashed",
    }
}
