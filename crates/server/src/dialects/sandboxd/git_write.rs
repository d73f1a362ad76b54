//! Changing a repository in the workspace. Its hooks and filters run in the sandbox, as they would
//! by hand. None of these is tried again: a commit that was made would be made twice.

use axum::extract::State;
use sandbank_protocol::{GitCheckout, GitCommitRequest, GitPaths, GitPerson};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::git_view::Person;
use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{SandboxPath, Strict};
use crate::reply::{Done, Reply};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GitPathsBody)]
pub(super) struct PathsBody {
    /// In which repository; by the first of `paths` where it is absent, else the workspace's own.
    path: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    /// Everything in the repository, and no `paths`.
    #[serde(default)]
    all: bool,
}

impl PathsBody {
    fn checked(self) -> ApiResult<GitPaths> {
        let Self { path, paths, all } = self;
        paths.iter().chain(&path).try_for_each(|path| path_rule::any(path).map(drop))?;
        Ok(GitPaths { path, paths, all })
    }
}

/// Put changes into the index.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/git:stage", tag = "git",
    params(("id" = String, Path)), request_body = PathsBody,
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn stage(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<PathsBody>,
) -> ApiResult<Reply<Done>> {
    let paths = body.checked()?;
    app.orchestrator().attach(&id).await?.git_stage(&paths).await?;
    Ok(Done::reply())
}

/// Take changes out of the index; the work tree keeps them.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/git:unstage", tag = "git",
    params(("id" = String, Path)), request_body = PathsBody,
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn unstage(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<PathsBody>,
) -> ApiResult<Reply<Done>> {
    let paths = body.checked()?;
    app.orchestrator().attach(&id).await?.git_unstage(&paths).await?;
    Ok(Done::reply())
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GitCommitBody)]
pub(super) struct CommitBody {
    /// In which repository.
    path: Option<String>,
    message: String,
    /// Also the committer where none is configured.
    author: Option<Person>,
    /// Replace the last commit.
    #[serde(default)]
    amend: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GitCommitted)]
pub(super) struct CommittedView {
    commit: String,
}

/// Commit what is in the index.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/git:commit", tag = "git",
    params(("id" = String, Path)), request_body = CommitBody,
    responses((status = 200, body = CommittedView), (status = "default", body = ErrorBody)))]
pub(super) async fn commit(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<CommitBody>,
) -> ApiResult<Reply<CommittedView>> {
    let CommitBody { path, message, author, amend } = body;
    path.iter().try_for_each(|path| path_rule::any(path).map(drop))?;
    let author = author.map(|Person { name, email }| GitPerson { name, email });
    let request = GitCommitRequest { path, message, author, amend };
    let committed = app.orchestrator().attach(&id).await?.git_commit(&request).await?;
    Ok(Reply(CommittedView { commit: committed.commit }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GitCheckoutBody)]
pub(super) struct CheckoutBody {
    /// In which repository.
    path: Option<String>,
    branch: String,
    /// Make it first, from what is checked out.
    #[serde(default)]
    create: bool,
}

/// Check out a branch.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/git:checkout", tag = "git",
    params(("id" = String, Path)), request_body = CheckoutBody,
    responses((status = 200, body = Done), (status = "default", body = ErrorBody)))]
pub(super) async fn checkout(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<CheckoutBody>,
) -> ApiResult<Reply<Done>> {
    let CheckoutBody { path, branch, create } = body;
    path.iter().try_for_each(|path| path_rule::any(path).map(drop))?;
    let request = GitCheckout { path, branch, create };
    app.orchestrator().attach(&id).await?.git_checkout(&request).await?;
    Ok(Done::reply())
}
