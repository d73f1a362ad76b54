//! `PUT /files?offset=N`: bytes into an existing file, in place.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, FaultCode};
use sandbank_rooted_fs::RootedError;

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use super::upload::Upload;
use crate::http::{self, RunnerBody};

pub(super) async fn handle(
    workspace: &Workspace,
    mut query: Query,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let mut offset = query.number("offset")?.unwrap_or(0);
    let expected = query.expected()?;
    query.finish()?;
    let file = match workspace.root.open_write(&path) {
        Err(RootedError::NotFound(path)) if !expected.is_met_by(None) => {
            return Err(refuse(RootedError::Changed(path)));
        }
        file => file.map_err(refuse)?,
    };
    if !expected.is_met_by(Some(file.stat())) {
        return Err(refuse(RootedError::Changed(path)));
    }
    let size = file.stat().size;
    if offset > size {
        // A hole would hide that bytes of a resumed upload were lost.
        let message = format!("the file has {size} bytes, writing at {offset} would leave a gap");
        return Err(Fault::new(FaultCode::Conflict, message));
    }
    let mut upload = Upload::new(body);
    while let Some(chunk) = upload.chunk().await? {
        file.write_all_at(offset, &chunk).map_err(refuse)?;
        offset += chunk.len() as u64;
    }
    Ok(http::json(&file.stat_now().map_err(refuse)?))
}
