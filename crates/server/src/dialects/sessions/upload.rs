//! Files that come as a form.

use axum::extract::State;
use sandbank_orchestrator::Attached;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{self, SessionError};
use super::form::{Form, FormBody};
use super::id::SessionId;
use super::place;
use crate::app::App;
use crate::error::ApiResult;
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Uploaded)]
pub(super) struct UploadView {
    ok: bool,
    /// Absolute, in the order they came.
    paths: Vec<String>,
}

/// Upload files, all or none, making missing directories.
#[utoipa::path(post, path = "/v1/sessions/{id}/fs/upload", tag = "sessions",
    params(("id" = String, Path)),
    request_body(content = FormBody, content_type = "multipart/form-data"),
    responses((status = 200, body = UploadView), (status = "default", body = SessionError)))]
pub(super) async fn upload(
    State(app): State<App>,
    id: SessionId,
    form: Form,
) -> ApiResult<Reply<UploadView>> {
    write(&place::of_session(&app, &id).await?, &form).await
}

pub(super) async fn write(attached: &Attached, form: &Form) -> ApiResult<Reply<UploadView>> {
    let call = |client: sandbank_channel::RunnerClient| async move {
        client.write_many(form.body()).await
    };
    let paths = form.shown();
    let first = paths.first().map_or("", String::as_str);
    attached.run(call).await.map_err(|error| error::of_file(first, error))?;
    Ok(Reply(UploadView { ok: true, paths }))
}
