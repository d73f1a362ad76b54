//! The sandboxd dialect, and Sandbank's own API, which extends it.
//!
//! Handlers validate, convert and map errors. sandboxd's routes keep its literal messages and
//! its reading of numbers; our own routes are strict.

mod adjusted;
mod attach;
mod command_start;
mod command_tail;
mod command_view;
pub(super) mod command_watch;
mod commands;
mod conditions;
mod containment;
mod create;
mod daemon;
mod differences;
mod doctor;
mod environment;
mod events;
mod file_archive;
mod file_batch;
mod file_copy;
mod file_raw;
mod file_tree;
mod file_walk;
mod file_watch;
mod files;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod git_read;
mod git_view;
mod git_write;
mod image_import;
mod image_pull;
mod images;
mod log_stream;
mod logs;
mod metrics;
mod number;
mod path_rule;
mod ports;
mod post_mortem_view;
mod range;
pub(crate) mod reconnect;
mod sandbox_view;
mod sandboxes;
mod screen;
mod search;
mod signals;
mod stats_view;
mod stdin;
mod tokens;
mod wait;
mod watch_feed;
mod watch_socket;

use utoipa_axum::routes;

use crate::auth::{Access, Scope};
use crate::routes::Routes;
pub(super) use create::limits;

const SANDBOXD: Access = Access::Sandboxd(Scope::Sandbox);
const SANDBOXD_READ: Access = Access::Sandboxd(Scope::ReadOnly);
const OWN: Access = Access::Token(Scope::Sandbox);
const OWN_READ: Access = Access::Token(Scope::ReadOnly);
const OWN_ADMIN: Access = Access::Token(Scope::Admin);

/// Adds every route of this dialect, sandboxd's own first.
pub(crate) fn routes(routes: Routes) -> Routes {
    own_daemon(own_git(own_files(own_commands(own_sandboxes(sandboxd(routes))))))
}

fn sandboxd(routes: Routes) -> Routes {
    routes
        .add(Access::Public, routes!(daemon::health))
        .add(SANDBOXD, routes!(sandboxes::create))
        .add(SANDBOXD, routes!(sandboxes::stop))
        .add(SANDBOXD, routes!(commands::start))
        .add(SANDBOXD_READ, routes!(wait::wait))
        .add(SANDBOXD_READ, routes!(logs::logs))
        .add(SANDBOXD, routes!(commands::kill))
        .add(SANDBOXD, routes!(files::write))
        .add(SANDBOXD_READ, routes!(files::read))
        .add(SANDBOXD, routes!(ports::publish))
}

fn own_sandboxes(routes: Routes) -> Routes {
    routes
        .add(OWN_READ, routes!(sandboxes::list))
        .add(OWN_READ, routes!(sandboxes::inspect))
        .add(OWN, routes!(sandboxes::delete))
        .add(OWN, routes!(sandboxes::pause))
        .add(OWN, routes!(sandboxes::resume))
        .add(OWN_READ, routes!(sandboxes::stats))
        .add(OWN, routes!(containment::containment))
        .add(OWN_READ, routes!(sandboxes::post_mortem))
        .add(OWN_READ, routes!(ports::list))
        .add(OWN, routes!(ports::unpublish))
}

fn own_commands(routes: Routes) -> Routes {
    routes
        .add(OWN_READ, routes!(commands::list))
        .add(OWN_READ, routes!(commands::inspect))
        .add(OWN, routes!(stdin::write))
        .add(OWN, routes!(signals::signal))
        .add(OWN, routes!(signals::resize))
        .add(OWN_READ, routes!(screen::screen))
        .add(OWN, routes!(attach::attach))
}

fn own_files(routes: Routes) -> Routes {
    routes
        .add(OWN_READ, routes!(file_raw::download))
        .add(OWN_READ, routes!(file_raw::describe))
        .add(OWN, routes!(file_raw::upload))
        .add(OWN, routes!(file_raw::remove))
        .add(OWN_READ, routes!(file_tree::stat))
        .add(OWN_READ, routes!(file_tree::list))
        .add(OWN, routes!(file_tree::mkdir))
        .add(OWN, routes!(file_tree::rename))
        .add(OWN_READ, routes!(file_walk::tree))
        .add(OWN_READ, routes!(file_archive::pack))
        .add(OWN, routes!(file_archive::unpack))
        .add(OWN, routes!(file_copy::copy))
        .add(OWN, routes!(file_copy::chmod))
        .add(OWN_READ, routes!(search::names))
        .add(OWN_READ, routes!(search::text))
        .add(OWN_READ, routes!(file_watch::watch))
}

fn own_git(routes: Routes) -> Routes {
    routes
        .add(OWN_READ, routes!(git_read::status))
        .add(OWN_READ, routes!(git_read::diff))
        .add(OWN_READ, routes!(git_read::show))
        .add(OWN_READ, routes!(git_read::log))
        .add(OWN_READ, routes!(git_read::branches))
        .add(OWN, routes!(git_write::stage))
        .add(OWN, routes!(git_write::unstage))
        .add(OWN, routes!(git_write::commit))
        .add(OWN, routes!(git_write::checkout))
}

fn own_daemon(routes: Routes) -> Routes {
    routes
        .add(Access::Public, routes!(daemon::openapi))
        .add(OWN_READ, routes!(events::events))
        .add(OWN_READ, routes!(doctor::doctor))
        .add(OWN_READ, routes!(metrics::metrics))
        .add(OWN_READ, routes!(images::list))
        .add(OWN_ADMIN, routes!(image_import::import))
        .add(OWN_ADMIN, routes!(image_pull::pull))
        .add(OWN_ADMIN, routes!(images::prune))
        .add(OWN_ADMIN, routes!(images::remove))
        .add(OWN_ADMIN, routes!(tokens::list))
        .add(OWN_ADMIN, routes!(tokens::create))
        .add(OWN_ADMIN, routes!(tokens::revoke))
}
