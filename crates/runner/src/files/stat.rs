//! `GET /files/stat`: what is at a path. A symbolic link is described itself.

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
    query.finish()?;
    Ok(http::json(&workspace.root.stat(&path, Links::Keep).map_err(refuse)?))
}
