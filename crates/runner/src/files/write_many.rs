//! `POST /files/write-many`: several files, all or none.
//!
//! Every content is written under a temporary name first; only then do the files take their
//! places. Whatever fails, the temporaries go and the old versions stay. Directories made for the
//! new files may stay, too.

use hyper::Response;
use hyper::body::Incoming;
use sandbank_protocol::file_batch::{FileHeader, MAX_HEADER_BYTES};
use sandbank_protocol::{Fault, FaultCode, Written};
use sandbank_rooted_fs::{Batch, PendingFile};

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use super::upload::Records;
use crate::http::{self, RunnerBody};
use crate::limits::MAX_BATCH_FILES;

pub(super) async fn handle(
    workspace: &Workspace,
    query: Query,
    body: Incoming,
) -> Result<Response<RunnerBody>, Fault> {
    query.finish()?;
    let mut records = Records::new(body);
    let mut batch = Batch::new(&workspace.root);
    let mut written = Written { files: 0, bytes: 0 };
    while !records.at_end().await? {
        if written.files == MAX_BATCH_FILES {
            let message = format!("a batch has at most {MAX_BATCH_FILES} files");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        let header = header(&mut records).await?;
        batch.add(content(workspace, &mut records, &header).await?).map_err(refuse)?;
        written.files += 1;
        written.bytes = written.bytes.saturating_add(header.size);
    }
    batch.commit().map_err(refuse)?;
    Ok(http::json(&written))
}

async fn header(records: &mut Records) -> Result<FileHeader, Fault> {
    let length = records.exactly(4).await?;
    let length = length.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
    if length > MAX_HEADER_BYTES {
        let message = format!("a header of {length} bytes is above the limit");
        return Err(Fault::new(FaultCode::Invalid, message));
    }
    let header = records.exactly(length as usize).await?;
    serde_json::from_slice(&header).map_err(|error| {
        Fault::new(FaultCode::Invalid, format!("a header is not understood: {error}"))
    })
}

async fn content(
    workspace: &Workspace,
    records: &mut Records,
    header: &FileHeader,
) -> Result<PendingFile, Fault> {
    let path = workspace.path(&header.path)?;
    let mut file = workspace.root.create(&path, Some(header.mode)).map_err(refuse)?;
    let mut left = header.size;
    while left > 0 {
        let piece = records.some(left).await?;
        file.write_all(&piece).map_err(refuse)?;
        left -= piece.len() as u64;
    }
    Ok(file)
}
