//! `DELETE /files`: a file, a link, an empty directory, or a whole tree when asked.

use hyper::Response;
use sandbank_protocol::Fault;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::REMOVAL_STEPS_PER_TURN;

pub(super) async fn handle(
    workspace: &Workspace,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let recursive = query.flag("recursive")?;
    let expected = query.expected()?;
    query.finish()?;
    workspace.root.require(&path, &expected).map_err(refuse)?;
    if !recursive {
        workspace.root.remove(&path).map_err(refuse)?;
        return Ok(http::no_content());
    }
    let mut removal = workspace.root.begin_removal(&path).map_err(refuse)?;
    let mut steps = 0u32;
    while !removal.step().map_err(refuse)? {
        steps += 1;
        if steps.is_multiple_of(REMOVAL_STEPS_PER_TURN) {
            tokio::task::yield_now().await;
        }
    }
    Ok(http::no_content())
}
