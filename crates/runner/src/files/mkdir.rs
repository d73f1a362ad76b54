//! `POST /files/mkdir`.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, MkdirRequest};

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
    let request: MkdirRequest = http::read_json(body).await?;
    let path = workspace.path(&request.path)?;
    let made = match request.parents {
        true => workspace.root.mkdir_all(&path),
        false => workspace.root.mkdir(&path),
    };
    Ok(http::json(&made.map_err(refuse)?))
}
