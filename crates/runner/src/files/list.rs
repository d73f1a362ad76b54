//! `GET /files/list`: the entries of a directory, bounded in number and in bytes.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use hyper::Response;
use sandbank_protocol::{DirListing, Fault, FileEntry};
use sandbank_rooted_fs::{Entry, Names};

use super::Workspace;
use super::fault::refuse;
use super::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{LIST_ENTRIES_PER_TURN, MAX_LIST_ENTRIES, MAX_LIST_TEXT_BYTES};

pub(super) async fn handle(
    workspace: &Workspace,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    query.finish()?;
    let directory = workspace.root.open_directory(&path).map_err(refuse)?;
    let Names { names, mut truncated } = directory.names(MAX_LIST_ENTRIES).map_err(refuse)?;
    let mut entries = Vec::with_capacity(names.len());
    let mut text_bytes = 0;
    for (index, name) in names.into_iter().enumerate() {
        if index % LIST_ENTRIES_PER_TURN == LIST_ENTRIES_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let Some(entry) = directory.entry(name).map_err(refuse)? else { continue };
        let entry = file_entry(&entry);
        text_bytes += text_size(&entry);
        if text_bytes > MAX_LIST_TEXT_BYTES {
            truncated = true;
            break;
        }
        entries.push(entry);
    }
    Ok(http::json(&DirListing { entries, truncated }))
}

fn file_entry(entry: &Entry) -> FileEntry {
    let exact = entry.name.to_str().is_some();
    FileEntry {
        name: entry.name.to_string_lossy().into_owned(),
        name_hex: (!exact).then(|| hex(entry.name.as_bytes())),
        stat: entry.stat.clone(),
        target: entry.target.as_ref().map(|target| target.to_string_lossy().into_owned()),
    }
}

fn text_size(entry: &FileEntry) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    entry.name.len() + optional(&entry.name_hex) + optional(&entry.target)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
