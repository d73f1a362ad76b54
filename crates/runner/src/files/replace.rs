//! `PUT /files`: a whole file, replaced atomically when its last byte has arrived.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::{Fault, FaultCode};

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
    let mode = query.number("mode")?.map(file_mode).transpose()?;
    let expected = query.expected()?;
    query.finish()?;
    let mut file = workspace.root.create_if(&path, mode, expected).map_err(refuse)?;
    let mut upload = Upload::new(body);
    while let Some(chunk) = upload.chunk().await? {
        file.write_all(&chunk).map_err(refuse)?;
    }
    Ok(http::json(&file.commit().map_err(refuse)?))
}

fn file_mode(mode: u64) -> Result<u32, Fault> {
    u32::try_from(mode)
        .ok()
        .filter(|mode| *mode <= 0o7777)
        .ok_or_else(|| Fault::new(FaultCode::Invalid, format!("{mode} is not a file mode")))
}
