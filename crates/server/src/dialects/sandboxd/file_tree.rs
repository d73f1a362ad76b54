//! The workspace as a tree: what is there, and moving it about.

use axum::extract::State;
use sandbank_protocol::{DirListing, FileKind, FileStat, FileTag, MkdirRequest, MoveRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::files::PathQuery;
use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath, Strict};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FileStat)]
pub(super) struct StatView {
    /// `file`, `directory`, `symlink` or `other`.
    #[schema(value_type = String)]
    kind: FileKind,
    size: u64,
    /// Permission bits.
    mode: u32,
    modified_ms: i64,
    /// Of this version; in quotes it is the file's ETag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    tag: Option<FileTag>,
}

impl From<FileStat> for StatView {
    fn from(stat: FileStat) -> Self {
        let FileStat { kind, size, mode, modified_ms, tag } = stat;
        Self { kind, size, mode, modified_ms, tag }
    }
}

/// What a path names.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:stat", tag = "files",
    params(("id" = String, Path), PathQuery),
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn stat(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Reply<StatView>> {
    let path = path_rule::any(&query.path)?;
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.run(|client| async move { client.stat(path).await }).await?.into()))
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DirListing)]
pub(super) struct ListView {
    entries: Vec<EntryView>,
    /// There are more than the runner tells at once.
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FileEntry)]
pub(super) struct EntryView {
    name: String,
    /// The exact bytes where the name is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_hex: Option<String>,
    #[serde(flatten)]
    stat: StatView,
    /// Of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl From<DirListing> for ListView {
    fn from(listing: DirListing) -> Self {
        let entries = listing.entries.into_iter().map(|entry| EntryView {
            name: entry.name,
            name_hex: entry.name_hex,
            stat: entry.stat.into(),
            target: entry.target,
        });
        Self { entries: entries.collect(), truncated: listing.truncated }
    }
}

/// What is in a directory, sorted by name.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:list", tag = "files",
    params(("id" = String, Path), PathQuery),
    responses((status = 200, body = ListView), (status = "default", body = ErrorBody)))]
pub(super) async fn list(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Reply<ListView>> {
    let path = if query.path.is_empty() { "." } else { path_rule::any(&query.path)? };
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.run(|client| async move { client.list(path).await }).await?.into()))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MkdirBody {
    path: String,
    /// Make missing parents, and accept an existing directory.
    #[serde(default)]
    parents: bool,
}

/// Make a directory.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files:mkdir", tag = "files",
    params(("id" = String, Path)), request_body = MkdirBody,
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn mkdir(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<MkdirBody>,
) -> ApiResult<Reply<StatView>> {
    path_rule::any(&body.path)?;
    let request = MkdirRequest { path: body.path, parents: body.parents };
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.mkdir(&request).await?.into()))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveBody {
    from: String,
    to: String,
    /// Replace what is at `to`.
    #[serde(default)]
    overwrite: bool,
}

/// Move or rename.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files:move", tag = "files",
    params(("id" = String, Path)), request_body = MoveBody,
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn rename(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<MoveBody>,
) -> ApiResult<Reply<StatView>> {
    path_rule::any(&body.from)?;
    path_rule::any(&body.to)?;
    let request = MoveRequest { from: body.from, to: body.to, overwrite: body.overwrite };
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.rename(&request).await?.into()))
}
