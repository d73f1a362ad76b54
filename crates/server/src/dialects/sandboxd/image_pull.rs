//! Pulling an image from a registry, with progress as NDJSON. It ends when the client leaves.

use axum::extract::State;
use axum::response::Response;
use sandbank_engine::{ImageName, PullRequest, RegistryCredentials};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::image_import::Import;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::Strict;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PullBody {
    /// `[registry[:port]/]name[:tag]` or `…@sha256:<digest>`; without a registry it is Docker's.
    reference: String,
    /// What to call it here; the reference without its digest if absent.
    name: Option<String>,
    /// For the image's registry; nobody else is shown them, and they are not kept.
    username: Option<String>,
    password: Option<String>,
    /// The engine that is to have it; the default one when absent.
    engine: Option<String>,
}

impl PullBody {
    fn name(&self) -> ApiResult<ImageName> {
        let written = self.reference.split('@').next().unwrap_or_default();
        let name = self.name.as_deref().unwrap_or(written);
        name.parse().map_err(|error| {
            ApiError::bad_request("invalid_image", format!("{error}"))
                .with_hint("give the image a `name` of its own")
        })
    }

    fn request(self) -> ApiResult<PullRequest> {
        let credentials = match (self.username, self.password) {
            (Some(username), Some(password)) => Some(RegistryCredentials { username, password }),
            (None, None) => None,
            _ => {
                let message = "username and password belong together";
                return Err(ApiError::bad_request("invalid_credentials", message));
            }
        };
        Ok(PullRequest { reference: self.reference, credentials })
    }
}

/// Pull an image from its registry. Lines are those of an import; when the connection ends before
/// them, the pull does too, and nothing of it is kept.
#[utoipa::path(post, path = "/v1/images:pull", tag = "images", request_body = PullBody,
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn pull(
    State(app): State<App>,
    caller: Caller,
    Strict(body): Strict<PullBody>,
) -> ApiResult<Response> {
    let name = body.name()?;
    let images = app.orchestrator().images(body.engine.as_deref())?;
    let engine = images.engine();
    let request = body.request()?;
    tracing::info!(image = %name, engine, reference = request.reference, by = %caller.name, "image pull started");
    let cancelled = CancellationToken::new();
    let guard = cancelled.clone().drop_guard();
    let pulling = Import::start(app, engine, Some(guard), move |app, tell| async move {
        images.pull(&name, &request, &tell, &cancelled, &app.settings().data_dir).await
    });
    pulling.answer().await
}
