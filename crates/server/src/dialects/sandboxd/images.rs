//! Images that sandboxes can be made of.

use axum::extract::State;
use http::StatusCode;
use sandbank_engine::{Freed, ImageInfo, ImageName};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::Segments;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Image)]
pub(super) struct ImageView {
    name: String,
    /// `sha256:…` of the image's configuration; none for `host`.
    digest: Option<String>,
    size_bytes: u64,
    layers: u32,
    /// Unix time in milliseconds.
    imported_at_ms: Option<u64>,
}

impl From<ImageInfo> for ImageView {
    fn from(info: ImageInfo) -> Self {
        Self {
            name: info.name.into(),
            digest: info.digest,
            size_bytes: info.size_bytes,
            layers: info.layers,
            imported_at_ms: info.imported_at_ms,
        }
    }
}

/// What is on the disk no more.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cleared {
    ok: bool,
    freed_layers: u32,
    freed_bytes: u64,
}

impl From<Freed> for Cleared {
    fn from(freed: Freed) -> Self {
        Self { ok: true, freed_layers: freed.layers, freed_bytes: freed.bytes }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImageList {
    images: Vec<ImageView>,
}

/// Every image.
#[utoipa::path(get, path = "/v1/images", tag = "images",
    responses((status = 200, body = ImageList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<ImageList>> {
    let images = app.orchestrator().engine().images().await?;
    Ok(Reply(ImageList { images: images.into_iter().map(Into::into).collect() }))
}

/// Remove an image that no sandbox uses. Slashes and colons of the name are percent-encoded.
#[utoipa::path(delete, path = "/v1/images/{name}", tag = "images",
    params(("name" = String, Path)),
    responses((status = 200, body = Cleared), (status = "default", body = ErrorBody)))]
pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    segments: Segments,
) -> ApiResult<Reply<Cleared>> {
    let not_found = || ApiError::not_found("image_not_found");
    let name: ImageName = segments.get("name")?.parse().map_err(|_| not_found())?;
    if name.is_host() {
        return Err(host_stays());
    }
    let freed = match app.orchestrator().remove_image(&name).await {
        Err(sandbank_engine::EngineError::ImageNotFound(_)) => return Err(not_found()),
        result => result?,
    };
    app.images().forget();
    tracing::info!(image = %name, by = %caller.name, freed = freed.bytes, "image removed");
    Ok(Reply(freed.into()))
}

/// Remove what no image and no sandbox is made of any more.
#[utoipa::path(post, path = "/v1/images:prune", tag = "images",
    responses((status = 200, body = Cleared), (status = "default", body = ErrorBody)))]
pub(super) async fn prune(State(app): State<App>, caller: Caller) -> ApiResult<Reply<Cleared>> {
    let freed = app.orchestrator().engine().prune_images().await?;
    tracing::info!(by = %caller.name, layers = freed.layers, freed = freed.bytes, "images pruned");
    Ok(Reply(freed.into()))
}

fn host_stays() -> ApiError {
    let message = "the image host is always there and cannot be removed";
    ApiError::new(StatusCode::CONFLICT, "image_built_in", message)
        .with_hint("it is this machine's /usr, read-only; only imported images can be removed")
}
