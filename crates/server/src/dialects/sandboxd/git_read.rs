//! Looking at a repository in the workspace. Nothing that the repository names is run for it.

use axum::extract::State;
use sandbank_channel as channel;
use serde::Deserialize;
use utoipa::IntoParams;

use super::files::PathQuery;
use super::git_view::{BranchesView, DiffView, LogView, ShowView, StatusView};
use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath};
use crate::reply::Reply;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StatusQuery {
    /// What is told of; the whole workspace where it is absent.
    #[serde(default)]
    path: String,
    /// `normal` tells of an untracked directory as one entry, `all` of its files, `no` of neither.
    untracked: Option<String>,
    /// Tell of what is ignored, too.
    #[serde(default)]
    ignored: bool,
}

/// What differs from the last commit.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/git:status", tag = "git",
    params(("id" = String, Path), StatusQuery),
    responses((status = 200, body = StatusView), (status = "default", body = ErrorBody)))]
pub(super) async fn status(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<StatusQuery>,
) -> ApiResult<Reply<StatusView>> {
    let StatusQuery { path, untracked, ignored } = query;
    let query = &channel::StatusQuery { path: optional(path)?, untracked, ignored };
    let attached = app.orchestrator().attach(&id).await?;
    let status = attached.run(|client| async move { client.git_status(query).await }).await?;
    Ok(Reply(status.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DiffQuery {
    /// A file or directory; the whole workspace where it is absent.
    #[serde(default)]
    path: String,
    /// Of the index, and not of the work tree.
    #[serde(default)]
    staged: bool,
    /// From this commit, as `HEAD`; from the index where it is absent.
    from: Option<String>,
    /// To this commit, and not to the index or the work tree.
    to: Option<String>,
}

/// Differences as text, at most 2 MiB.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/git:diff", tag = "git",
    params(("id" = String, Path), DiffQuery),
    responses((status = 200, body = DiffView), (status = "default", body = ErrorBody)))]
pub(super) async fn diff(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<DiffQuery>,
) -> ApiResult<Reply<DiffView>> {
    let DiffQuery { path, staged, from, to } = query;
    let query = &channel::DiffQuery { path: optional(path)?, staged, from, to };
    let attached = app.orchestrator().attach(&id).await?;
    let diff = attached.run(|client| async move { client.git_diff(query).await }).await?;
    Ok(Reply(diff.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ShowQuery {
    #[serde(default)]
    path: String,
    /// `HEAD` where it is absent.
    revision: Option<String>,
}

/// A file as a commit has it, at most 2 MiB of it.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/git:show", tag = "git",
    params(("id" = String, Path), ShowQuery),
    responses((status = 200, body = ShowView), (status = "default", body = ErrorBody)))]
pub(super) async fn show(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<ShowQuery>,
) -> ApiResult<Reply<ShowView>> {
    let path = path_rule::any(&query.path)?;
    let revision = query.revision.as_deref();
    let attached = app.orchestrator().attach(&id).await?;
    let show = attached.run(|client| async move { client.git_show(path, revision).await }).await?;
    Ok(Reply(show.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogQuery {
    /// Only commits that changed it.
    #[serde(default)]
    path: String,
    /// `HEAD` where it is absent.
    revision: Option<String>,
    /// 50 where it is absent, at most 500.
    limit: Option<u64>,
    /// How many of the newest to leave out.
    #[serde(default)]
    after: u64,
}

/// Commits, newest first.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/git:log", tag = "git",
    params(("id" = String, Path), LogQuery),
    responses((status = 200, body = LogView), (status = "default", body = ErrorBody)))]
pub(super) async fn log(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<LogQuery>,
) -> ApiResult<Reply<LogView>> {
    let LogQuery { path, revision, limit, after } = query;
    let query = &channel::LogQuery { path: optional(path)?, revision, limit, after };
    let attached = app.orchestrator().attach(&id).await?;
    let log = attached.run(|client| async move { client.git_log(query).await }).await?;
    Ok(Reply(log.into()))
}

/// Branches, and those of remotes as last seen.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/git:branches", tag = "git",
    params(("id" = String, Path), PathQuery),
    responses((status = 200, body = BranchesView), (status = "default", body = ErrorBody)))]
pub(super) async fn branches(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<PathQuery>,
) -> ApiResult<Reply<BranchesView>> {
    let path = &optional(query.path)?;
    let attached = app.orchestrator().attach(&id).await?;
    let list = attached.run(|client| async move { client.git_branches(path).await }).await?;
    Ok(Reply(list.into()))
}

fn optional(path: String) -> ApiResult<String> {
    if !path.is_empty() {
        path_rule::any(&path)?;
    }
    Ok(path)
}
