//! `POST /files/copy`: another file, link or tree like one that is there.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{CopyRequest, Fault};
use sandbank_rooted_fs::Overwrite;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::{self, RunnerBody};
use crate::offload::Offload;

pub(super) async fn handle(
    workspace: &Workspace,
    offload: &Offload,
    query: Query,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    let request: CopyRequest = http::read_json(body).await?;
    let (from, to) = (workspace.path(&request.from)?, workspace.path(&request.to)?);
    let overwrite = if request.overwrite { Overwrite::Yes } else { Overwrite::No };
    let root = workspace.root();
    let copy =
        move |wanted: &dyn Fn() -> bool| root.copy(&from, &to, overwrite, wanted).map_err(refuse);
    Ok(http::json(&offload.answer("copy", copy).await?))
}
