//! Requests about a repository in the workspace.

use http::Method;
use sandbank_protocol::{
    GitBranches, GitCheckout, GitCommitRequest, GitCommitted, GitDiff, GitLog, GitPaths, GitShow,
    GitStatus, percent_encoded,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{encode, timed};
use crate::limits::GIT_TIMEOUT;
use crate::{ChannelError, RunnerClient, full_body};

/// At and below a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusQuery {
    pub path: String,
    /// `normal`, `all` or `no`.
    pub untracked: Option<String>,
    pub ignored: bool,
}

/// Of what from what; see the runner's route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffQuery {
    pub path: String,
    pub staged: bool,
    pub from: Option<String>,
    pub to: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    pub path: String,
    pub revision: Option<String>,
    pub limit: Option<u64>,
    /// How many to leave out.
    pub after: u64,
}

impl RunnerClient {
    pub async fn git_status(&self, query: &StatusQuery) -> Result<GitStatus, ChannelError> {
        let target = target("status", &query.path);
        let untracked = optional("untracked", query.untracked.as_deref());
        self.git(&format!("{target}{untracked}&ignored={}", query.ignored)).await
    }

    pub async fn git_diff(&self, query: &DiffQuery) -> Result<GitDiff, ChannelError> {
        let target = target("diff", &query.path);
        let from = optional("from", query.from.as_deref());
        let to = optional("to", query.to.as_deref());
        self.git(&format!("{target}&staged={}{from}{to}", query.staged)).await
    }

    pub async fn git_show(
        &self,
        path: &str,
        revision: Option<&str>,
    ) -> Result<GitShow, ChannelError> {
        self.git(&format!("{}{}", target("show", path), optional("revision", revision))).await
    }

    pub async fn git_log(&self, query: &LogQuery) -> Result<GitLog, ChannelError> {
        let target = target("log", &query.path);
        let revision = optional("revision", query.revision.as_deref());
        let limit = query.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        self.git(&format!("{target}{revision}{limit}&after={}", query.after)).await
    }

    pub async fn git_branches(&self, path: &str) -> Result<GitBranches, ChannelError> {
        self.git(&target("branches", path)).await
    }

    pub async fn git_stage(&self, paths: &GitPaths) -> Result<(), ChannelError> {
        self.git_change("/git/stage", paths).await
    }

    pub async fn git_unstage(&self, paths: &GitPaths) -> Result<(), ChannelError> {
        self.git_change("/git/unstage", paths).await
    }

    pub async fn git_commit(
        &self,
        request: &GitCommitRequest,
    ) -> Result<GitCommitted, ChannelError> {
        self.post_within(GIT_TIMEOUT, "/git/commit", request).await
    }

    pub async fn git_checkout(&self, request: &GitCheckout) -> Result<(), ChannelError> {
        self.git_change("/git/checkout", request).await
    }

    async fn git<T: DeserializeOwned>(&self, target: &str) -> Result<T, ChannelError> {
        timed(GIT_TIMEOUT, self.get(target)).await?
    }

    async fn git_change(&self, path: &str, body: &impl Serialize) -> Result<(), ChannelError> {
        let body = serde_json::to_vec(body).expect("protocol types are plain data");
        timed(GIT_TIMEOUT, self.call(Method::POST, path, full_body(body))).await?.map(drop)
    }
}

/// The workspace itself where no path is named.
fn target(verb: &str, path: &str) -> String {
    let path = if path.is_empty() { "." } else { path };
    format!("/git/{verb}?path={}", encode(path))
}

fn optional(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!("&{name}={}", percent_encoded(value, b""))).unwrap_or_default()
}
