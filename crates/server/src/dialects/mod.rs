//! Wire protocols. Each translates; none decides.

pub(crate) mod reserved_keys;
pub(crate) mod sandboxd;
pub(crate) mod sessions;
mod workspace;

pub(crate) use sessions::pool_entries as session_pool;
pub(crate) use workspace::{
    Group, GroupLimits, Measured, Sessions as WorkspaceSessions, find_sessions, measure,
    place_error,
};

use axum::response::Response;

use crate::error::ApiError;
use crate::routes::Routes;

/// Every route of every dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    workspace::routes(sessions::routes(sandboxd::routes(routes)))
}

/// Whose clients read the answers of a path; it decides how errors look, also those that are made
/// before a handler is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// sandboxd's and Sandbank's own.
    Own,
    Sessions,
    Workspace,
}

impl Dialect {
    pub(crate) fn of(path: &str) -> Self {
        if sessions::is_ours(path) {
            Self::Sessions
        } else if workspace::is_ours(path) {
            Self::Workspace
        } else {
            Self::Own
        }
    }

    /// The finished answer.
    pub(crate) fn render(self, error: &ApiError, request_id: &str) -> Response {
        match self {
            Self::Own => error.render(request_id),
            Self::Sessions => sessions::render(error, request_id),
            Self::Workspace => workspace::render(error, request_id),
        }
    }

    pub(crate) fn method_not_allowed(self) -> ApiError {
        match self {
            // sandboxd knows only paths that are there and paths that are not.
            Self::Own => ApiError::route_not_found(),
            Self::Sessions => sessions::method_not_allowed(),
            Self::Workspace => workspace::method_not_allowed(),
        }
    }
}
