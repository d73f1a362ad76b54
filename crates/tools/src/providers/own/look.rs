//! Looks at the workspace that its runner does itself: no program of the image is needed.

use sandbank_channel::{ChannelError, TreeOptions};
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{FileKind, SearchOrder, TextRecord, TextSearch, TreeRecord};

use super::failed;
use crate::limits::{LOOK_MS, MAX_FOUND_LINE_BYTES};
use crate::{Found, FoundLine, Listed, Listing, Search, ToolError};

pub(super) async fn list(
    attached: &Attached,
    path: &str,
    depth: u64,
    limit: u64,
) -> Result<Listing, ToolError> {
    let options =
        TreeOptions { depth, nodes: limit, time_ms: LOOK_MS, stat: true, hidden: true, sort: true };
    let walk = attached.run(|client| async move { client.tree(path, options).await });
    let mut walk = walk.await.map_err(failed)?;
    let mut listing = Listing::default();
    let mut is_whole = false;
    while let Some(lines) = walk.next().await.map_err(broken)? {
        for record in lines.records {
            match record {
                TreeRecord::Entry(entry) => listing.entries.push(Listed {
                    size: entry.size.filter(|_| entry.kind == FileKind::File),
                    kind: kind(entry.kind),
                    path: entry.path,
                }),
                TreeRecord::End(end) => (is_whole, listing.truncated) = (true, end.truncated),
            }
        }
    }
    listing.truncated |= !is_whole;
    Ok(listing)
}

pub(super) async fn search(attached: &Attached, search: &Search) -> Result<Found, ToolError> {
    let wanted = TextSearch {
        pattern: search.pattern.clone(),
        path: search.path.clone(),
        globs: search.glob.iter().cloned().collect(),
        limit: Some(search.limit),
        max_line_bytes: Some(MAX_FOUND_LINE_BYTES),
        time_ms: Some(LOOK_MS),
        sort: SearchOrder::Path,
        ..TextSearch::default()
    };
    let wanted = &wanted;
    let lines = attached.run(|client| async move { client.search_text(wanted).await });
    let mut lines = lines.await.map_err(failed)?;
    let mut found = Found::default();
    let mut is_whole = false;
    while let Some(some) = lines.next().await.map_err(broken)? {
        for record in some.records {
            match record {
                TextRecord::Match(line) => found.matches.push(FoundLine {
                    path: line.path.into_owned(),
                    line: line.line,
                    text: line.text.into_owned(),
                }),
                TextRecord::Context(_) => {}
                TextRecord::End(end) => (is_whole, found.truncated) = (true, end.truncated),
            }
        }
    }
    found.truncated |= !is_whole;
    Ok(found)
}

fn broken(error: ChannelError) -> ToolError {
    failed(OrchestratorError::from(error))
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Other => "other",
    }
}
