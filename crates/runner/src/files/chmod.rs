//! `POST /files/chmod`: permission bits of a file, a directory, or a whole tree.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{ChmodRequest, Fault, FaultCode};

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
    let ChmodRequest { path, mode, recursive } = http::read_json(body).await?;
    let path = workspace.path(&path)?;
    if mode > 0o777 {
        let message = format!("{mode:o} is more than the nine permission bits");
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    if !recursive {
        let changed = workspace.root.chmod(&path, mode, false, &|| true);
        return Ok(http::json(&changed.map_err(refuse)?));
    }
    let root = workspace.root();
    let change =
        move |wanted: &dyn Fn() -> bool| root.chmod(&path, mode, true, wanted).map_err(refuse);
    Ok(http::json(&offload.answer("chmod", change).await?))
}
