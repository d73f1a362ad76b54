//! Copies within the workspace, and permission bits.

use axum::extract::State;
use sandbank_protocol::{ChmodRequest, CopyRequest};
use serde::Deserialize;
use utoipa::ToSchema;

use super::file_raw::octal;
use super::file_tree::StatView;
use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{SandboxPath, Strict};
use crate::reply::Reply;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CopyBody {
    from: String,
    /// Its directory must exist.
    to: String,
    /// Replace a file, a link or an empty directory at `to`.
    #[serde(default)]
    overwrite: bool,
}

/// Copy a file, a link or a whole tree, which appears when it is complete.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files:copy", tag = "files",
    params(("id" = String, Path)), request_body = CopyBody,
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn copy(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<CopyBody>,
) -> ApiResult<Reply<StatView>> {
    path_rule::any(&body.from)?;
    path_rule::any(&body.to)?;
    let request = CopyRequest { from: body.from, to: body.to, overwrite: body.overwrite };
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.copy(&request).await?.into()))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChmodBody {
    path: String,
    /// Permission bits in octal, like 0644.
    mode: String,
    /// Also everything below a directory, links excepted.
    #[serde(default)]
    recursive: bool,
}

/// Change who may read, write and run a file or enter a directory.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files:chmod", tag = "files",
    params(("id" = String, Path)), request_body = ChmodBody,
    responses((status = 200, body = StatView), (status = "default", body = ErrorBody)))]
pub(super) async fn chmod(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<ChmodBody>,
) -> ApiResult<Reply<StatView>> {
    path_rule::any(&body.path)?;
    let mode = octal(&body.mode)?;
    let request = ChmodRequest { path: body.path, mode, recursive: body.recursive };
    let attached = app.orchestrator().attach(&id).await?;
    Ok(Reply(attached.chmod(&request).await?.into()))
}
