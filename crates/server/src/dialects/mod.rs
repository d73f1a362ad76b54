//! Wire protocols. Each translates; none decides.

mod chat;
mod mcp;
pub(crate) mod reserved_keys;
pub(crate) mod sandboxd;
pub(crate) mod sessions;
mod told;
mod tools;
mod workspace;

pub(crate) use mcp::McpSessions;
pub(crate) use sessions::pool_entries as session_pool;
pub(crate) use tools::{build as build_tools, mark as mark_tools};
pub(crate) use workspace::{
    Group, GroupLimits, Measured, Sessions as WorkspaceSessions, find_sessions, measure,
    place_error,
};

use axum::response::Response;

use crate::error::ApiError;
use crate::routes::Routes;

/// Every route of every dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    let routes = workspace::routes(sessions::routes(sandboxd::routes(routes)));
    mcp::routes(chat::routes(tools::routes(routes)))
}

/// Whose clients read the answers of a path; it decides how errors look, also those that are made
/// before a handler is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// sandboxd's and Sandbank's own.
    Own,
    Sessions,
    Workspace,
    Tools,
}

impl Dialect {
    pub(crate) fn of(path: &str) -> Self {
        if sessions::is_ours(path) {
            Self::Sessions
        } else if tools::is_ours(path) || chat::is_ours(path) {
            Self::Tools
        } else if workspace::is_ours(path) {
            Self::Workspace
        } else {
            Self::Own
        }
    }

    /// Whether every answer of a path says in a header if its caller has tools.
    pub(crate) fn tells_of_tools(path: &str) -> bool {
        tools::tells(path) || path == "/api/chat"
    }

    /// The finished answer.
    pub(crate) fn render(self, error: &ApiError, request_id: &str) -> Response {
        match self {
            Self::Own | Self::Tools => error.render(request_id),
            Self::Sessions => sessions::render(error),
            Self::Workspace => workspace::render(error),
        }
    }

    pub(crate) fn method_not_allowed(self) -> ApiError {
        match self {
            // sandboxd knows only paths that are there and paths that are not.
            Self::Own => ApiError::route_not_found(),
            Self::Sessions => sessions::method_not_allowed(),
            Self::Workspace | Self::Tools => workspace::method_not_allowed(),
        }
    }
}
