//! Renaming, and moving into another directory.

use axum::extract::State;
use http::StatusCode;
use sandbank_protocol::{FaultCode, FileKind, MkdirRequest, MoveRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::Fields;
use super::error::{Detail, refused};
use super::file::about_file;
use super::path;
use super::place::{Place, Refusal};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Renamed {
    success: bool,
    old_path: String,
    new_path: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Moved {
    success: bool,
    old_path: String,
    dest_path: String,
}

/// Give a file or directory another name.
#[utoipa::path(post, path = "/api/file/rename", tag = "workspace", request_body = Object,
    responses((status = 200, body = Renamed), (status = "default", body = Detail)))]
pub(super) async fn rename(State(app): State<App>, fields: Fields) -> ApiResult<Reply<Renamed>> {
    let (old, new) = (fields.text("old_path")?, fields.text("new_path")?);
    let (from, to) = (named(old)?, named(new)?);
    let place = Place::of(&app).await?;
    let taken = || format!("Target exists: {new}");
    let request = MoveRequest { from, to, overwrite: false };
    if let Err(error) = put(&place, old, &request, taken).await {
        make_parent(&place, &request, error).await?;
        put(&place, old, &request, taken).await?;
    }
    Ok(Reply(Renamed { success: true, old_path: old.to_owned(), new_path: new.to_owned() }))
}

/// Move a file or directory into a directory.
#[utoipa::path(post, path = "/api/file/move", tag = "workspace", request_body = Object,
    responses((status = 200, body = Moved), (status = "default", body = Detail)))]
pub(super) async fn move_into(State(app): State<App>, fields: Fields) -> ApiResult<Reply<Moved>> {
    let (source, directory) = (fields.text("src_path")?, fields.text("dest_dir")?);
    let (from, into) = (named(source)?, path::clean(directory)?);
    let place = Place::of(&app).await?;
    let wanted = into.as_str();
    let stat = place.run(|client| async move { client.stat_target(wanted).await }).await;
    let stat = stat.map_err(|refusal| about_file(directory, refusal))?;
    if stat.kind != FileKind::Directory {
        let message = format!("Destination is not a directory: {directory}");
        return Err(refused(StatusCode::BAD_REQUEST, "wrong_kind", message));
    }
    let to = path::join(&into, path::base_name(&from));
    let dest_path = to.clone();
    let taken = || format!("Target exists in destination: {dest_path}");
    put(&place, source, &MoveRequest { from, to, overwrite: false }, taken).await?;
    Ok(Reply(Moved { success: true, old_path: source.to_owned(), dest_path }))
}

fn named(asked: &str) -> ApiResult<String> {
    match path::clean(asked)?.as_str() {
        "." => Err(ApiError::bad_request("is_root", "The workspace itself cannot be moved")),
        path => Ok(path.to_owned()),
    }
}

/// Where all that is missing is the directory to move to, it is made; else the error stays.
async fn make_parent(place: &Place, request: &MoveRequest, error: ApiError) -> ApiResult<()> {
    let directory = path::parent(&request.to);
    let from = request.from.as_str();
    let is_there = || place.run(|client| async move { client.stat(from).await });
    if error.code != "not_found" || directory.is_empty() || is_there().await.is_err() {
        return Err(error);
    }
    let request = MkdirRequest { path: directory.to_owned(), parents: true };
    let made = place.once(|client| async move { client.mkdir(&request).await }).await;
    made.map(drop).map_err(|refusal| about_file(directory, refusal))
}

async fn put(
    place: &Place,
    asked: &str,
    request: &MoveRequest,
    taken: impl Fn() -> String,
) -> ApiResult<()> {
    match place.once(|client| async move { client.rename(request).await }).await {
        Ok(_) => Ok(()),
        Err(Refusal::Fault(FaultCode::Conflict, _)) => {
            Err(refused(StatusCode::CONFLICT, "conflict", taken()))
        }
        Err(other) => Err(about_file(asked, other)),
    }
}
