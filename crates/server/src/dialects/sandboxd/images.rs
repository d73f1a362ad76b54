//! Images that sandboxes can be made of.

use axum::extract::State;
use http::StatusCode;
use sandbank_engine::{Freed, ImageInfo, ImageName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, Segments};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Image)]
pub(super) struct ImageView {
    name: String,
    /// The engine that has it.
    engine: &'static str,
    /// `sha256:…` of the image's configuration; none for `host`.
    digest: Option<String>,
    size_bytes: u64,
    layers: u32,
    /// Unix time in milliseconds.
    imported_at_ms: Option<u64>,
}

impl ImageView {
    pub(super) fn new(engine: &'static str, info: ImageInfo) -> Self {
        Self {
            name: info.name.into(),
            engine,
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
    /// Engines, other than the default one, whose images are not listed, because they do not answer;
    /// absent when all do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    unavailable: Vec<&'static str>,
}

/// Which engine's images are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineQuery {
    /// The default one when absent.
    engine: Option<String>,
}

/// Every image of every engine.
#[utoipa::path(get, path = "/v1/images", tag = "images",
    responses((status = 200, body = ImageList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<ImageList>> {
    let mut list = ImageList { images: Vec::new(), unavailable: Vec::new() };
    for (place, engine) in app.orchestrator().engines().enumerate() {
        let name = engine.name();
        match engine.images().await {
            Ok(images) => {
                list.images.extend(images.into_iter().map(|image| ImageView::new(name, image)));
            }
            Err(error) if place == 0 => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, engine = name, "its images are not known now");
                list.unavailable.push(name);
            }
        }
    }
    Ok(Reply(list))
}

/// Remove an image that no sandbox uses. Slashes and colons of the name are percent-encoded.
#[utoipa::path(delete, path = "/v1/images/{name}", tag = "images",
    params(("name" = String, Path), EngineQuery),
    responses((status = 200, body = Cleared), (status = "default", body = ErrorBody)))]
pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EngineQuery>,
    segments: Segments,
) -> ApiResult<Reply<Cleared>> {
    let not_found = || ApiError::not_found("image_not_found");
    let name: ImageName = segments.get("name")?.parse().map_err(|_| not_found())?;
    if name.is_host() {
        return Err(host_stays());
    }
    let images = app.orchestrator().images(query.engine.as_deref())?;
    let freed = match images.remove(&name).await {
        Err(sandbank_engine::EngineError::ImageNotFound(_)) => return Err(not_found()),
        result => result?,
    };
    app.images().forget();
    tracing::info!(image = %name, engine = images.engine(), by = %caller.name, freed = freed.bytes, "image removed");
    Ok(Reply(freed.into()))
}

/// Remove what no image and no sandbox is made of any more.
#[utoipa::path(post, path = "/v1/images:prune", tag = "images", params(EngineQuery),
    responses((status = 200, body = Cleared), (status = "default", body = ErrorBody)))]
pub(super) async fn prune(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EngineQuery>,
) -> ApiResult<Reply<Cleared>> {
    let freed = app.orchestrator().images(query.engine.as_deref())?.prune().await?;
    tracing::info!(by = %caller.name, layers = freed.layers, freed = freed.bytes, "images pruned");
    Ok(Reply(freed.into()))
}

fn host_stays() -> ApiError {
    let message = "the image host is always there and cannot be removed";
    ApiError::new(StatusCode::CONFLICT, "image_built_in", message)
        .with_hint("it is this machine's /usr, read-only; only imported images can be removed")
}
