//! The dialect of boring-ui: one workspace with its files, search, git, terminals, chats and approvals.
//!
//! The workspace is wherever the configuration says its runner is (`place.rs`); every answer is
//! made from what that runner says, so it is the same wherever that is. Where the original is
//! known to fail, a defined answer takes the failure's place.

mod about;
mod approvals;
mod body;
mod chat;
mod error;
mod file;
mod git;
mod path;
mod place;
mod pty;
mod query;
mod rename;
mod search;
mod sessions;
mod tree;

use utoipa_axum::routes;

use crate::auth::{Access, Scope};
use crate::routes::Routes;
pub(crate) use error::{is_ours, method_not_allowed, render};
pub(crate) use place::{find_sessions, place_error};
pub(crate) use sessions::Sessions;

const USE: Access = Access::Workspace(Scope::Sandbox);

/// Adds every route of this dialect. A look may make the sandbox that the workspace is in.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add(Access::Public, routes!(about::health))
        .add(USE, routes!(about::capabilities))
        .add(USE, routes!(about::config))
        .add(USE, routes!(about::project))
        .add(USE, routes!(tree::tree))
        .add(USE, routes!(file::read))
        .add(USE, routes!(file::write))
        .add(USE, routes!(file::remove))
        .add(USE, routes!(rename::rename))
        .add(USE, routes!(rename::move_into))
        .add(USE, routes!(search::search))
        .add(USE, routes!(git::status))
        .add(USE, routes!(git::diff))
        .add(USE, routes!(git::show))
        .add(USE, routes!(sessions::route::list))
        .add(USE, routes!(sessions::route::create))
        .add(USE, routes!(chat::stream))
        .add(USE, routes!(pty::join))
        .add(USE, routes!(approvals::request))
        .add(USE, routes!(approvals::pending))
        .add(USE, routes!(approvals::decide))
        .add(USE, routes!(approvals::status))
        .add(USE, routes!(approvals::delete))
}
