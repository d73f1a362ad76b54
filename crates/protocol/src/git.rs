//! The Git repository of a workspace. Paths are relative to the workspace; where one is not UTF-8
//! it is lossy, and its `…_hex` has the exact bytes.

use serde::{Deserialize, Serialize};

/// Whose state it is. That there is no repository is an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitRepository {
    pub is_repository: bool,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its top directory; `.` for the workspace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitStatus {
    #[serde(flatten)]
    pub repository: GitRepository,
    #[serde(default)]
    pub head: GitHead,
    pub entries: Vec<GitEntry>,
    /// There are more entries than these.
    pub truncated: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHead {
    /// None where no branch is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// None before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
}

/// One path that differs: between `HEAD` and the index, and between the index and the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitEntry {
    /// Of an untracked or ignored directory with a `/` at its end.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// Where a renamed or copied one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hex: Option<String>,
    pub index: GitChange,
    pub worktree: GitChange,
    /// Both sides of a merge changed it; `index` is ours then and `worktree` theirs.
    pub conflict: bool,
    pub submodule: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GitChange {
    None,
    Modified,
    TypeChanged,
    Added,
    Deleted,
    Renamed,
    Copied,
    /// Of a conflict: changed there, too.
    Unmerged,
    Untracked,
    Ignored,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitDiff {
    #[serde(flatten)]
    pub repository: GitRepository,
    /// Lossy where it is not UTF-8.
    pub diff: String,
    /// A file in it is binary: that it differs is said, not how.
    pub binary: bool,
    pub truncated: bool,
}

/// A path as a revision has it. That it is not there is an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitShow {
    #[serde(flatten)]
    pub repository: GitRepository,
    pub found: bool,
    /// What the revision names; none when there is no such revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<GitObject>,
    /// Of the whole content.
    pub size: u64,
    /// Where it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    pub truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GitObject {
    File,
    Executable,
    Symlink,
    Directory,
    Submodule,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitLog {
    #[serde(flatten)]
    pub repository: GitRepository,
    /// Where the list begins: with it as `revision` and a larger `after` it goes on, whatever was
    /// committed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    pub commits: Vec<GitCommit>,
    /// There are older ones.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitCommit {
    pub id: String,
    pub parents: Vec<String>,
    pub author: GitPerson,
    pub authored_at: i64,
    pub committer: GitPerson,
    pub committed_at: i64,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitPerson {
    pub name: String,
    pub email: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitBranches {
    #[serde(flatten)]
    pub repository: GitRepository,
    pub branches: Vec<GitBranch>,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitBranch {
    /// With its remote's name before it, where it is a remote's.
    pub name: String,
    pub remote: bool,
    pub current: bool,
    pub commit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Unix time in seconds.
    pub committed_at: i64,
}

/// What to stage or unstage, in the repository that `path`, or else the first of `paths`, is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitPaths {
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub paths: Vec<String>,
    /// Everything in the repository, and no `paths`.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitCommitRequest {
    #[serde(default)]
    pub path: Option<String>,
    pub message: String,
    /// Also the committer where none is configured.
    #[serde(default)]
    pub author: Option<GitPerson>,
    #[serde(default)]
    pub amend: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCommitted {
    pub commit: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitCheckout {
    #[serde(default)]
    pub path: Option<String>,
    pub branch: String,
    /// Make it first, from what is checked out.
    #[serde(default)]
    pub create: bool,
}
