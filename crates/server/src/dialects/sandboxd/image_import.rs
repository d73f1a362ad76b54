//! Importing an image from a file on the daemon's machine, with progress as NDJSON.
//!
//! The status line waits for the first sign of life, so that an archive that is refused at once
//! is a plain error.

use std::convert::Infallible;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use sandbank_engine::{EngineError, ImageInfo, ImageName, ImportProgress};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;
use utoipa::ToSchema;

use super::images::ImageView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::Strict;
use crate::reply::NDJSON;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportBody {
    name: String,
    /// Of the archive, absolute, on the daemon's machine: rootfs tar, `docker save` or OCI
    /// layout; plain, gzip or zstd.
    path: String,
    /// The engine that is to have it; the default one when absent.
    engine: Option<String>,
}

/// Import an image. Lines are `{"type":"progress","bytesDone","bytesTotal"}`, and at last
/// `{"type":"done","image"}` or `{"type":"error","error"}`.
#[utoipa::path(post, path = "/v1/images:import", tag = "images", request_body = ImportBody,
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn import(
    State(app): State<App>,
    caller: Caller,
    Strict(body): Strict<ImportBody>,
) -> ApiResult<Response> {
    let name: ImageName = body
        .name
        .parse()
        .map_err(|error| ApiError::bad_request("invalid_image", format!("{error}")))?;
    if !body.path.starts_with('/') || body.path.contains('\0') {
        return Err(ApiError::bad_request("invalid_path", "path must be absolute"));
    }
    let images = app.orchestrator().images(body.engine.as_deref())?;
    let engine = images.engine();
    tracing::info!(image = %name, engine, by = %caller.name, "image import started");
    let archive = PathBuf::from(body.path);
    let importing = Import::start(app, engine, None, move |app, tell| async move {
        images.import(&name, &archive, &tell, &app.settings().data_dir).await
    });
    importing.answer().await
}

/// An image on its way, from wherever.
pub(super) struct Import {
    engine: &'static str,
    progress: watch::Receiver<ImportProgress>,
    /// Goes on when the client leaves: engines do not stop half-way, and whenever the image is
    /// there at last, the list of images has to be forgotten.
    task: JoinHandle<Result<ImageInfo, EngineError>>,
    over: bool,
    /// Of work that nobody wants any more once the client has left.
    _cancel: Option<DropGuard>,
}

/// Hears how far it is.
pub(super) type Tell = Box<dyn Fn(ImportProgress) + Send + Sync>;

enum Step {
    Progress(ImportProgress),
    Done(Result<ImageInfo, EngineError>),
}

impl Import {
    pub(super) fn start<Work>(
        app: App,
        engine: &'static str,
        cancel: Option<DropGuard>,
        work: impl FnOnce(App, Tell) -> Work + Send + 'static,
    ) -> Self
    where
        Work: Future<Output = Result<ImageInfo, EngineError>> + Send,
    {
        let (told, progress) = watch::channel(ImportProgress { bytes_done: 0, bytes_total: 0 });
        let task = tokio::spawn(async move {
            let tell: Tell = Box::new(move |now| _ = told.send(now));
            let result = work(app.clone(), tell).await;
            app.images().forget();
            result
        });
        Self { engine, progress, task, over: false, _cancel: cancel }
    }

    /// A plain error if it fails at once, else lines until its end.
    pub(super) async fn answer(mut self) -> ApiResult<Response> {
        match self.first().await {
            Step::Done(result) => {
                let last = line(self.engine, Step::Done(Ok(result?)));
                Ok(([(header::CONTENT_TYPE, NDJSON)], last).into_response())
            }
            first => {
                let first = line(self.engine, first);
                Ok(self.stream(first))
            }
        }
    }

    /// The first byte read, or the end: that an import begins is no sign of life.
    async fn first(&mut self) -> Step {
        loop {
            match self.next().await {
                Step::Progress(now) if now.bytes_done == 0 => {}
                step => return step,
            }
        }
    }

    async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Ok(()) = self.progress.changed() => Step::Progress(*self.progress.borrow_and_update()),
            ended = &mut self.task => {
                self.over = true;
                Step::Done(ended.unwrap_or_else(|error| {
                    Err(EngineError::Internal(format!("the import did not finish: {error}")))
                }))
            }
        }
    }

    fn stream(self, first: Bytes) -> Response {
        let rest = stream::unfold(self, |mut import| async move {
            if import.over {
                return None;
            }
            let step = import.next().await;
            Some((line(import.engine, step), import))
        });
        let lines = futures_util::StreamExt::chain(stream::iter([first]), rest);
        let lines = futures_util::StreamExt::map(lines, Ok::<_, Infallible>);
        ([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(lines)).into_response()
    }
}

fn line(engine: &'static str, step: Step) -> Bytes {
    let record = match step {
        Step::Progress(now) => {
            json!({"type": "progress", "bytesDone": now.bytes_done, "bytesTotal": now.bytes_total})
        }
        Step::Done(Ok(image)) => {
            json!({"type": "done", "image": ImageView::new(engine, image)})
        }
        Step::Done(Err(error)) => {
            let error = ApiError::from(error);
            json!({"type": "error", "error": error.message, "code": error.code, "hint": error.hint})
        }
    };
    format!("{record}\n").into()
}
