//! One level of the workspace.

use axum::extract::State;
use futures_util::{StreamExt, stream};
use http::StatusCode;
use sandbank_protocol::{DirListing, FaultCode, FileEntry, FileKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{Detail, refused};
use super::path;
use super::place::{Place, Refusal};
use super::query::Parameters;
use crate::app::App;
use crate::error::ApiResult;
use crate::limits::LINKS_AT_ONCE;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tree {
    entries: Vec<Entry>,
    path: String,
    /// Only there when entries are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation_reason: Option<&'static str>,
}

#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Entry {
    name: String,
    path: String,
    is_dir: bool,
    /// Of files only.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// What is in a directory: directories first, then by name.
#[utoipa::path(get, path = "/api/tree", tag = "workspace",
    params(("path" = Option<String>, Query)),
    responses((status = 200, body = Tree), (status = "default", body = Detail)))]
pub(super) async fn tree(State(app): State<App>, parameters: Parameters) -> ApiResult<Reply<Tree>> {
    let asked = parameters.directory();
    let directory = path::clean(asked)?;
    let place = Place::of(&app).await?;
    let wanted = directory.as_str();
    let listing = place.run(|client| async move { client.list(wanted).await }).await;
    let listing = match listing {
        Ok(listing) => listing,
        Err(Refusal::Fault(FaultCode::NotFound, _)) => {
            DirListing { entries: Vec::new(), truncated: false }
        }
        Err(Refusal::Fault(FaultCode::WrongKind, _)) => {
            let message = format!("Path is not a directory: {asked}");
            return Err(refused(StatusCode::BAD_REQUEST, "wrong_kind", message));
        }
        Err(Refusal::Fault(FaultCode::OutsideWorkspace, _)) => return Err(path::traversal(asked)),
        Err(other) => return Err(other.into()),
    };
    let truncated = listing.truncated;
    let found = stream::iter(listing.entries).map(|entry| describe(&place, &directory, entry));
    let mut entries: Vec<Entry> = found.buffer_unordered(LINKS_AT_ONCE).collect().await;
    entries
        .sort_by_cached_key(|entry| (!entry.is_dir, entry.name.to_lowercase(), entry.name.clone()));
    Ok(Reply(Tree {
        entries,
        path: asked.to_owned(),
        truncated,
        truncation_reason: truncated.then_some("nodes"),
    }))
}

/// A link is what it leads to; one that leads nowhere, or out, is a file without a size.
async fn describe(place: &Place, directory: &str, entry: FileEntry) -> Entry {
    let full = path::join(directory, &entry.name);
    let stat = match entry.stat.kind {
        FileKind::Symlink => {
            let target = full.as_str();
            place.run(|client| async move { client.stat_target(target).await }).await.ok()
        }
        _ => Some(entry.stat),
    };
    let is_dir = stat.as_ref().is_some_and(|stat| stat.kind == FileKind::Directory);
    let size = stat.filter(|stat| stat.kind == FileKind::File).map(|stat| stat.size);
    Entry { name: entry.name, path: full, is_dir, size }
}
