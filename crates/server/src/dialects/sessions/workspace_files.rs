//! Files of a kept workspace, with or without a session that has it.

use axum::extract::State;
use axum::response::Response;
use sandbank_protocol::{FileEntry, FileKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::{self, SessionError};
use super::files::{self, WriteBody};
use super::form::{Form, FormBody};
use super::id::WorkspacePath;
use super::read::{ReadQuery, ReadView};
use super::upload::UploadView;
use super::{path, place, read as reading, upload as uploading};
use crate::app::App;
use crate::error::ApiResult;
use crate::extract::{Query, Whole};
use crate::reply::{Done, Reply};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// A directory of the workspace, itself when absent.
    #[serde(default)]
    path: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkspaceListing)]
pub(super) struct ListView {
    entries: Vec<EntryView>,
    /// There are more than the runner tells at once.
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkspaceEntry)]
pub(super) struct EntryView {
    name: String,
    is_dir: bool,
}

impl From<FileEntry> for EntryView {
    fn from(entry: FileEntry) -> Self {
        Self { name: entry.name, is_dir: entry.stat.kind == FileKind::Directory }
    }
}

/// What is in a directory, sorted by name.
#[utoipa::path(get, path = "/v1/workspaces/{id}/fs", tag = "workspaces",
    params(("id" = String, Path), ListQuery),
    responses((status = 200, body = ListView), (status = "default", body = SessionError)))]
pub(super) async fn list_files(
    State(app): State<App>,
    WorkspacePath(id): WorkspacePath,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<ListView>> {
    let path = &path::directory(&query.path)?;
    let attached = place::of_workspace(&app, &id).await?;
    let listing = attached.run(|client| async move { client.list(path).await }).await;
    let listing = listing.map_err(|error| error::of_file(path, error))?;
    let entries = listing.entries.into_iter().map(Into::into).collect();
    Ok(Reply(ListView { entries, truncated: listing.truncated }))
}

/// Read a file, or its beginning.
#[utoipa::path(get, path = "/v1/workspaces/{id}/fs/read", tag = "workspaces",
    params(("id" = String, Path), ReadQuery),
    responses((status = 200, body = ReadView), (status = "default", body = SessionError)))]
pub(super) async fn read(
    State(app): State<App>,
    WorkspacePath(id): WorkspacePath,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Response> {
    let wanted = query.check()?;
    let listing = "list it with GET /v1/workspaces/{id}/fs?path=";
    reading::answer(place::of_workspace(&app, &id).await?, wanted, listing).await
}

/// Write a file as a whole; the workspace is made when it is not there.
#[utoipa::path(post, path = "/v1/workspaces/{id}/fs/write", tag = "workspaces",
    params(("id" = String, Path)), request_body = WriteBody<'static>,
    responses((status = 200, body = Done), (status = "default", body = SessionError)))]
pub(super) async fn write(
    State(app): State<App>,
    WorkspacePath(id): WorkspacePath,
    Whole(json): Whole,
) -> ApiResult<Reply<Done>> {
    let (path, content) = files::checked(&json)?;
    files::write_one(&place::of_workspace_or_new(&app, &id).await?, &path, content).await
}

/// Upload files, all or none; the workspace is made when it is not there.
#[utoipa::path(post, path = "/v1/workspaces/{id}/fs/upload", tag = "workspaces",
    params(("id" = String, Path)),
    request_body(content = FormBody, content_type = "multipart/form-data"),
    responses((status = 200, body = UploadView), (status = "default", body = SessionError)))]
pub(super) async fn upload(
    State(app): State<App>,
    WorkspacePath(id): WorkspacePath,
    form: Form,
) -> ApiResult<Reply<UploadView>> {
    uploading::write(&place::of_workspace_or_new(&app, &id).await?, &form).await
}
