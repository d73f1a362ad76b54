//! The dialect of Sandkasten's clients: sessions with a shell that remembers, and kept workspaces.
//!
//! A session is a sandbox whose key is `session:<id>`, and its shell is the one named `session`;
//! there is no table of its own. The files of a workspace are reached through a running sandbox that
//! has it, else through a caretaker, a sandbox whose key is `workspace:<id>`, so that every path is
//! resolved by a runner. A machine that is
//! kept ready is no session until it is taken, so no session has the status `pool_idle`.

mod clean;
mod cwd;
mod error;
mod exec;
mod files;
mod form;
mod health;
mod id;
mod image;
mod path;
mod place;
mod read;
mod script;
mod session;
mod sse;
mod stats;
mod stream;
mod upload;
mod view;
mod workspace_files;
mod workspaces;

pub(crate) use image::pool_entries;

use utoipa_axum::routes;

use crate::auth::{Access, Scope};
use crate::routes::Routes;
pub(crate) use error::{is_ours, method_not_allowed, render};

const USE: Access = Access::Sessions(Scope::Sandbox);
const LOOK: Access = Access::Sessions(Scope::ReadOnly);

/// Adds every route of this dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add(Access::Public, routes!(health::healthz))
        .add(USE, routes!(session::create))
        .add(LOOK, routes!(session::list))
        .add(LOOK, routes!(session::inspect))
        .add(USE, routes!(session::delete))
        .add(LOOK, routes!(stats::stats))
        .add(USE, routes!(exec::exec))
        .add(USE, routes!(stream::exec_stream))
        .add(USE, routes!(files::write))
        .add(USE, routes!(upload::upload))
        .add(LOOK, routes!(files::read))
        .add(LOOK, routes!(workspaces::list))
        .add(USE, routes!(workspaces::delete))
        // A look may make the sandbox that the files are reached through.
        .add(USE, routes!(workspace_files::list_files))
        .add(USE, routes!(workspace_files::read))
        .add(USE, routes!(workspace_files::write))
        .add(USE, routes!(workspace_files::upload))
}
