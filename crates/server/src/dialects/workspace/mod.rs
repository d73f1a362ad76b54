//! The dialect of boring-ui: one workspace with its files, search, git, terminals, chats and approvals.
//!
//! The workspace is wherever the configuration says its runner is (`place.rs`); every answer is
//! made from what that runner says, so it is the same wherever that is. Where the original is
//! known to fail, a defined answer takes the failure's place.

mod about;
mod approvals;
mod attachments;
mod body;
mod chat;
mod error;
mod file;
mod git;
mod groups;
mod measured;
mod path;
mod place;
mod pty;
mod query;
mod ready;
mod records;
mod rename;
mod search;
mod sessions;
mod tree;

use utoipa_axum::routes;

use crate::auth::{Access, Scope};
use crate::routes::Routes;
pub(crate) use error::{is_ours, method_not_allowed, render};
pub(crate) use groups::{Group, GroupLimits};
pub(crate) use measured::{Measured, measure};
pub(crate) use place::{find_sessions, place_error};
pub(crate) use sessions::Sessions;

const USE: Access = Access::Workspace(Scope::Sandbox);
/// What makes no sandbox.
const LOOK: Access = Access::Workspace(Scope::ReadOnly);

/// Adds every route of this dialect. A look may make the sandbox that the workspace is in.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add(Access::Public, routes!(about::health))
        .add(Access::Public, routes!(ready::readyz))
        .add(Access::Public, routes!(ready::version))
        .add(LOOK, routes!(about::capabilities))
        .add(LOOK, routes!(about::config))
        .add(LOOK, routes!(about::project))
        .add(USE, routes!(tree::tree))
        .add(USE, routes!(file::read))
        .add(USE, routes!(file::write))
        .add(USE, routes!(file::remove))
        .add(USE, routes!(rename::rename))
        .add(USE, routes!(rename::move_into))
        .add(USE, routes!(attachments::attach))
        .add(USE, routes!(search::search))
        .add(USE, routes!(git::status))
        .add(USE, routes!(git::diff))
        .add(USE, routes!(git::show))
        .add(USE, routes!(sessions::route::list))
        .add(USE, routes!(sessions::route::create))
        .add(USE, routes!(chat::stream))
        .add(USE, routes!(pty::join))
        .add(USE, routes!(approvals::request))
        .add(LOOK, routes!(approvals::pending))
        .add(USE, routes!(approvals::decide))
        .add(LOOK, routes!(approvals::status))
        .add(USE, routes!(approvals::delete))
        .add(LOOK, routes!(records::list))
        .add(USE, routes!(records::create))
        .add(LOOK, routes!(records::active))
        .add(LOOK, routes!(records::target))
        .add(LOOK, routes!(records::get))
        .add(USE, routes!(records::activate))
        .add(USE, routes!(records::start))
        .add(USE, routes!(records::stop))
}
