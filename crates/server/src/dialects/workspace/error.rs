//! Errors as boring-ui reads them: `{"detail": …}`, a sentence, or a list where input is wrong.

use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::ApiError;

/// An error of the workspace's routes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Detail {
    /// A sentence; of status 422 a list that says where the input is wrong.
    #[schema(value_type = Object)]
    detail: Value,
}

/// Whether errors of this path have this dialect's body.
pub(crate) fn is_ours(path: &str) -> bool {
    let below = ["/api/", "/ws/", "/__meta/"];
    below.iter().any(|prefix| path.starts_with(prefix)) || matches!(path, "/health" | "/readyz")
}

pub(crate) fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method Not Allowed")
}

/// The finished answer.
pub(crate) fn render(error: &ApiError) -> Response {
    let detail = match (&error.details, error.code) {
        (Some(list @ Value::Array(_)), _) => list.clone(),
        (_, "route_not_found") => json!("Not Found"),
        _ => json!(sentence(error)),
    };
    error.answer(&Detail { detail })
}

/// There is one field for people, so what to do next is part of the sentence. The original's own
/// sentences have no hint.
pub(super) fn sentence(error: &ApiError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.message.trim_end_matches('.')),
        None => error.message.clone(),
    }
}

/// Input that is missing or of the wrong kind, in the words of the original's framework.
pub(super) fn unprocessable(problem: Value) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", "the input is not valid")
        .with_details(Value::Array(vec![problem]))
}

pub(super) fn refused(status: StatusCode, code: &'static str, message: String) -> ApiError {
    ApiError::new(status, code, message)
}

pub(super) fn switched_off() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "workspace_off", "the workspace API is switched off")
        .with_hint("start the server with WORKSPACE_MODE=sandbox, local or remote")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dialects_own_paths_have_its_errors() {
        for path in ["/api/tree", "/api/", "/ws/pty", "/health", "/readyz", "/__meta/version"] {
            assert!(is_ours(path), "{path}");
        }
        for path in ["/v1/health", "/healthz", "/api", "/apis/x", "/"] {
            assert!(!is_ours(path), "{path}");
        }
    }

    #[test]
    fn hints_become_part_of_the_sentence() {
        assert_eq!(
            sentence(&switched_off()),
            "the workspace API is switched off; start the server with WORKSPACE_MODE=sandbox, local or \
             remote"
        );
    }
}
