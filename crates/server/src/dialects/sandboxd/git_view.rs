//! What is known of a repository, as our API tells it.

use sandbank_protocol as protocol;
use sandbank_protocol::{GitChange, GitObject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitRepository)]
pub(super) struct RepositoryView {
    /// That there is none is an answer, and no error.
    is_repository: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Its top directory from the workspace; `.` for the workspace itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
}

impl From<protocol::GitRepository> for RepositoryView {
    fn from(repository: protocol::GitRepository) -> Self {
        let protocol::GitRepository { is_repository, reason, root } = repository;
        Self { is_repository, reason, root }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitStatus)]
pub(super) struct StatusView {
    #[serde(flatten)]
    repository: RepositoryView,
    head: HeadView,
    entries: Vec<EntryView>,
    /// There are more entries than these.
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitHead)]
pub(super) struct HeadView {
    /// Absent where no branch is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Absent before the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Commits that the upstream branch does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitEntry)]
pub(super) struct EntryView {
    /// From the workspace. Of an untracked or ignored directory with a `/` at its end.
    path: String,
    /// The exact bytes where the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    /// Where a renamed or copied one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_hex: Option<String>,
    /// Against `HEAD`: `none`, `modified`, `typeChanged`, `added`, `deleted`, `renamed`, `copied`;
    /// `unmerged` in a conflict.
    #[schema(value_type = String)]
    index: GitChange,
    /// Against the index: the same, `untracked` or `ignored`.
    #[schema(value_type = String)]
    worktree: GitChange,
    /// Both sides of a merge changed it; `index` is ours then and `worktree` theirs.
    conflict: bool,
    submodule: bool,
}

impl From<protocol::GitStatus> for StatusView {
    fn from(status: protocol::GitStatus) -> Self {
        let protocol::GitHead { branch, commit, upstream, ahead, behind } = status.head;
        let entries = status.entries.into_iter().map(|entry| EntryView {
            path: entry.path,
            path_hex: entry.path_hex,
            from: entry.from,
            from_hex: entry.from_hex,
            index: entry.index,
            worktree: entry.worktree,
            conflict: entry.conflict,
            submodule: entry.submodule,
        });
        Self {
            repository: status.repository.into(),
            head: HeadView { branch, commit, upstream, ahead, behind },
            entries: entries.collect(),
            truncated: status.truncated,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitDiff)]
pub(super) struct DiffView {
    #[serde(flatten)]
    repository: RepositoryView,
    diff: String,
    /// A file in it is binary: that it differs is said, not how.
    binary: bool,
    truncated: bool,
}

impl From<protocol::GitDiff> for DiffView {
    fn from(diff: protocol::GitDiff) -> Self {
        let protocol::GitDiff { repository, diff, binary, truncated } = diff;
        Self { repository: repository.into(), diff, binary, truncated }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitShow)]
pub(super) struct ShowView {
    #[serde(flatten)]
    repository: RepositoryView,
    /// That it is not there is an answer, and no error.
    found: bool,
    /// What the revision names; absent when there is no such.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// `file`, `executable`, `symlink`, `directory` or `submodule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    kind: Option<GitObject>,
    /// Of the whole content.
    size: u64,
    /// Where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    truncated: bool,
}

impl From<protocol::GitShow> for ShowView {
    fn from(show: protocol::GitShow) -> Self {
        Self {
            repository: show.repository.into(),
            found: show.found,
            commit: show.commit,
            kind: show.kind,
            size: show.size,
            content: show.content,
            content_base64: show.content_base64,
            truncated: show.truncated,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitLog)]
pub(super) struct LogView {
    #[serde(flatten)]
    repository: RepositoryView,
    /// The newest commit of the whole list: with it as `revision` and a larger `after` the list
    /// goes on, whatever was committed meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    commits: Vec<CommitView>,
    /// There are older ones.
    more: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitCommit)]
pub(super) struct CommitView {
    id: String,
    parents: Vec<String>,
    author: Person,
    /// Unix time in seconds, as are all times here.
    authored_at: i64,
    committer: Person,
    committed_at: i64,
    message: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GitPerson)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) email: String,
}

impl From<protocol::GitPerson> for Person {
    fn from(person: protocol::GitPerson) -> Self {
        let protocol::GitPerson { name, email } = person;
        Self { name, email }
    }
}

impl From<protocol::GitLog> for LogView {
    fn from(log: protocol::GitLog) -> Self {
        let commits = log.commits.into_iter().map(|commit| CommitView {
            id: commit.id,
            parents: commit.parents,
            author: commit.author.into(),
            authored_at: commit.authored_at,
            committer: commit.committer.into(),
            committed_at: commit.committed_at,
            message: commit.message,
        });
        let (start, commits, more) = (log.start, commits.collect(), log.more);
        Self { repository: log.repository.into(), start, commits, more }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitBranches)]
pub(super) struct BranchesView {
    #[serde(flatten)]
    repository: RepositoryView,
    branches: Vec<BranchView>,
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GitBranch)]
pub(super) struct BranchView {
    /// With its remote's name before it, where it is a remote's.
    name: String,
    remote: bool,
    current: bool,
    commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    committed_at: i64,
}

impl From<protocol::GitBranches> for BranchesView {
    fn from(list: protocol::GitBranches) -> Self {
        let branches = list.branches.into_iter().map(|branch| BranchView {
            name: branch.name,
            remote: branch.remote,
            current: branch.current,
            commit: branch.commit,
            upstream: branch.upstream,
            committed_at: branch.committed_at,
        });
        let (branches, truncated) = (branches.collect(), list.truncated);
        Self { repository: list.repository.into(), branches, truncated }
    }
}
