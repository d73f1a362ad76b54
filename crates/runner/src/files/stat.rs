//! `GET /files/stat`: what is at a path. A symbolic link is described itself, unless it is to be followed.

use hyper::Response;
use sandbank_protocol::Fault;
use sandbank_rooted_fs::Links;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::{self, RunnerBody};

pub(super) fn handle(
    workspace: &Workspace,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let links = if query.flag("follow")? { Links::Follow } else { Links::Keep };
    query.finish()?;
    Ok(http::json(&workspace.root.stat(&path, links).map_err(refuse)?))
}
