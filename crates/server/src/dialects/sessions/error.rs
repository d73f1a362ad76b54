//! Errors as Sandkasten's clients read them, and those that only this dialect has.
//!
//! Every error of a route of this dialect has this body, also those made before a handler is reached.

use axum::response::Response;
use http::StatusCode;
use sandbank_channel::ChannelError;
use sandbank_engine::{EngineError, SandboxId};
use sandbank_orchestrator::{Cause, OrchestratorError};
use sandbank_protocol::FaultCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::id::SessionId;
use crate::app::App;
use crate::error::ApiError;

/// An error of the sessions' routes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionError {
    /// Stable; test this one.
    error_code: String,
    /// A sentence for people.
    message: String,
    /// `hint` says what to do next, `code` is Sandbank's own finer one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
}

const WHICH_KEY: &str = "send the key that the server was started with (SANDKASTEN_API_KEY, or \
    api_key in its sandkasten.yaml) as `Authorization: Bearer <key>`; the token in the data \
    directory's `token` file will do, too";

/// Whether errors of this path have this dialect's body.
pub(crate) fn is_ours(path: &str) -> bool {
    let below = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    below("/v1/sessions") || below("/v1/workspaces") || path == "/healthz"
}

pub(crate) fn method_not_allowed() -> ApiError {
    let message = "this path has no such method; GET /openapi.json describes every one";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
}

/// The finished answer.
pub(crate) fn render(error: &ApiError) -> Response {
    error.answer(&SessionError::from(error))
}

impl From<&ApiError> for SessionError {
    fn from(error: &ApiError) -> Self {
        let theirs = code(error);
        let mut details = match error.details.clone() {
            Some(Value::Object(details)) => details,
            _ => Map::new(),
        };
        if let Some(hint) = &error.hint {
            details.insert("hint".to_owned(), json!(hint));
        }
        if theirs != error.code {
            details.insert("code".to_owned(), json!(error.code));
        }
        let message = match error.status {
            StatusCode::UNAUTHORIZED => {
                details.insert("hint".to_owned(), json!(WHICH_KEY));
                "missing or invalid authorization".to_owned()
            }
            _ => error.message.clone(),
        };
        let details = (!details.is_empty()).then_some(Value::Object(details));
        Self { error_code: theirs.to_owned(), message, details }
    }
}

/// Ours are lower-case; those that are not were made for this dialect.
pub(super) fn code(error: &ApiError) -> &str {
    if error.code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
        return error.code;
    }
    match error.status {
        StatusCode::BAD_REQUEST => "INVALID_REQUEST",
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::REQUEST_TIMEOUT => "REQUEST_TIMEOUT",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::GONE => "GONE",
        StatusCode::PAYLOAD_TOO_LARGE => "REQUEST_TOO_LARGE",
        StatusCode::MISDIRECTED_REQUEST => "MISDIRECTED_REQUEST",
        StatusCode::TOO_MANY_REQUESTS => "TOO_MANY_REQUESTS",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        StatusCode::INSUFFICIENT_STORAGE => "STORAGE_FULL",
        _ => "INTERNAL_ERROR",
    }
}

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::bad_request("INVALID_REQUEST", message)
}

pub(super) fn session_not_found(id: &SessionId) -> ApiError {
    let message = format!("session not found: {id}; POST /v1/sessions makes a new one");
    ApiError::new(StatusCode::NOT_FOUND, "SESSION_NOT_FOUND", message)
}

/// A session that was, by how it ended.
pub(super) fn session_ended(id: &SessionId, cause: &Cause) -> ApiError {
    let (code, word) = match cause {
        Cause::IdleExpired | Cause::LifetimeExpired => ("SESSION_EXPIRED", "expired"),
        Cause::Stopped { .. } | Cause::Evicted => ("SESSION_DESTROYED", "destroyed"),
        Cause::RunnerDied { .. } | Cause::CreateFailed { .. } | Cause::Lost { .. } => {
            ("SESSION_CRASHED", "crashed")
        }
    };
    let message = format!(
        "session not running: {id} (status={word}): {cause}; POST /v1/sessions makes a new one"
    );
    ApiError::new(StatusCode::GONE, code, message)
}

/// What went wrong with a session, in its own words where there are any.
pub(super) fn of_session(id: &SessionId, error: OrchestratorError) -> ApiError {
    match error {
        OrchestratorError::NotFound(_) => session_not_found(id),
        OrchestratorError::Gone { cause, .. } => session_ended(id, &cause),
        other => other.into(),
    }
}

/// Who has a workspace, in this dialect's words: a sandbox's id says nothing to its callers.
pub(super) fn of_workspace(app: &App, error: OrchestratorError) -> ApiError {
    let OrchestratorError::Engine(inner) = &error else { return error.into() };
    let EngineError::WorkspaceInUse { id, by } = &**inner else { return error.into() };
    let session = |sandbox: &SandboxId| {
        let (key, _) = app.orchestrator().ownership(sandbox)?;
        SessionId::of(&key)
    };
    let names = by.iter().map(|sandbox| match session(sandbox) {
        Some(session) => format!("session {session}"),
        None => format!("sandbox {sandbox}"),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let message = format!("the workspace {id} is in use by {names}");
    let hint = "end what has it first: DELETE /v1/sessions/{id}, or DELETE /v1/sandboxes/{id}";
    ApiError::new(StatusCode::CONFLICT, "workspace_in_use", message).with_hint(hint)
}

/// What a runner refused about a path.
pub(super) fn of_file(path: &str, error: OrchestratorError) -> ApiError {
    let OrchestratorError::Channel(inner) = &error else { return error.into() };
    let ChannelError::Refused(fault) = &**inner else { return error.into() };
    let shown: String = path.chars().take(200).collect();
    match fault.code {
        FaultCode::NotFound => ApiError::new(
            StatusCode::NOT_FOUND,
            "FILE_NOT_FOUND",
            format!("there is no file {shown:?} in the workspace"),
        ),
        FaultCode::WrongKind => {
            invalid(format!("{shown:?} is not of the kind that is needed here"))
        }
        FaultCode::Conflict => invalid(format!("{shown:?} cannot be written: something is there")),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dialects_own_paths_have_its_errors() {
        for path in
            ["/healthz", "/v1/sessions", "/v1/sessions/", "/v1/sessions/x/y", "/v1/workspaces/a"]
        {
            assert!(is_ours(path), "{path}");
        }
        for path in ["/v1/sessionsX", "/v1/sandboxes", "/", "/healthz/x", "/v1/health"] {
            assert!(!is_ours(path), "{path}");
        }
    }

    #[test]
    fn a_foreign_error_keeps_its_own_code_and_hint_in_the_details() {
        let error = ApiError::bad_request("bad_json", "no").with_hint("do this");
        let body = serde_json::to_value(SessionError::from(&error)).unwrap();
        let details = json!({ "code": "bad_json", "hint": "do this" });
        assert_eq!(
            body,
            json!({ "error_code": "INVALID_REQUEST", "message": "no", "details": details })
        );
        let own = serde_json::to_value(SessionError::from(&invalid("x"))).unwrap();
        assert_eq!(own, json!({ "error_code": "INVALID_REQUEST", "message": "x" }));
    }

    #[test]
    fn every_ending_is_gone_and_says_how_and_what_to_do() {
        let id: SessionId = "0123abcd-0ef".parse().unwrap();
        let lost = Cause::Lost { reason: "odd".to_owned() };
        let stopped = Cause::Stopped { by: "me".to_owned() };
        for (cause, code) in [
            (Cause::IdleExpired, "SESSION_EXPIRED"),
            (stopped, "SESSION_DESTROYED"),
            (lost, "SESSION_CRASHED"),
        ] {
            let error = session_ended(&id, &cause);
            assert_eq!((error.status, error.code), (StatusCode::GONE, code));
            assert!(error.message.contains("POST /v1/sessions"), "{}", error.message);
        }
    }
}
