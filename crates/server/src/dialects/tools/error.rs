//! Which answer a call has that was not made, or did not end well.

use http::StatusCode;
use sandbank_tools::{Closed, ToolError};

use crate::error::ApiError;
use crate::limits::RETRY_SOON;

pub(in crate::dialects) fn of(error: &ToolError) -> ApiError {
    let status = match error {
        ToolError::UnknownTool(_) | ToolError::NotFound(_) => StatusCode::NOT_FOUND,
        ToolError::InvalidInput(_) => StatusCode::BAD_REQUEST,
        ToolError::Denied(_) => StatusCode::FORBIDDEN,
        ToolError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        ToolError::Cancelled => StatusCode::CONFLICT,
        ToolError::Failed(_) => StatusCode::BAD_GATEWAY,
    };
    let answer = ApiError::new(status, error.code(), error.to_string());
    match error {
        ToolError::UnknownTool(_) => answer.with_hint("GET /api/tools lists the ones there are"),
        ToolError::Unavailable(_) => {
            ApiError { retryable: true, retry_after: Some(RETRY_SOON), ..answer }
        }
        _ => answer,
    }
}

/// Tools that are not there are not found; those that are for others are forbidden.
pub(in crate::dialects) fn closed(gate: &Closed) -> ApiError {
    let (status, retryable) = match gate {
        Closed::Configuration | Closed::KillSwitch => (StatusCode::NOT_FOUND, false),
        Closed::Access(_) => (StatusCode::FORBIDDEN, false),
        Closed::Health(_) => (StatusCode::SERVICE_UNAVAILABLE, true),
    };
    let answer = ApiError::new(status, gate.code(), gate.to_string());
    ApiError { retryable, retry_after: retryable.then_some(RETRY_SOON), ..answer }
}
