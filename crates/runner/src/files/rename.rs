//! `POST /files/move`: a new name for a file, a link or a directory.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, MoveRequest};
use sandbank_rooted_fs::Overwrite;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::{self, RunnerBody};

pub(super) async fn handle(
    workspace: &Workspace,
    query: Query,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    let request: MoveRequest = http::read_json(body).await?;
    let (from, to) = (workspace.path(&request.from)?, workspace.path(&request.to)?);
    let overwrite = if request.overwrite { Overwrite::Yes } else { Overwrite::No };
    Ok(http::json(&workspace.root.rename(&from, &to, overwrite).map_err(refuse)?))
}
