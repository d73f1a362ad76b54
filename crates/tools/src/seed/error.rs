//! Why a workspace could not be filled. Nothing of these says a secret.

use std::path::PathBuf;

use super::limits::{MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES};
use crate::ToolError;

/// What helps against too much.
const NARROW: &str =
    "Narrow it with app.bash_tools.seed.upload_include, or use app.bash_tools.seed.mode = \"git\".";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    #[error("app.bash_tools.seed.git_url is refused: {0}")]
    Url(&'static str),
    #[error("app.bash_tools.seed.git_revision is refused: {0}")]
    Revision(&'static str),
    #[error("app.bash_tools.seed.git_token_env names {0}, but that variable is not set")]
    NoToken(String),
    #[error("Failed to seed sandbox from git (exit {code}). stderr: {stderr}")]
    Git { code: i32, stderr: String },
    #[error("app.bash_tools.project_root {root:?} cannot be read: {reason}")]
    Root { root: PathBuf, reason: String },
    #[error("git cannot say which files of project_root it tracks: {0}")]
    Tracked(String),
    #[error("app.bash_tools.seed.upload_include is no pattern: {0}")]
    Include(String),
    #[error("Too many files to upload from project_root (>{MAX_FILES}). {NARROW}")]
    TooManyFiles,
    #[error("project_root has more than {MAX_ENTRIES} entries. {NARROW}")]
    TooManyEntries,
    #[error("{path} in project_root has more than {MAX_FILE_BYTES} bytes. {NARROW}")]
    LargeFile { path: String },
    #[error("The files of project_root have more than {MAX_TOTAL_BYTES} bytes. {NARROW}")]
    TooLarge,
    #[error("{path} in project_root became shorter while it was uploaded; try again")]
    Changed { path: String },
    #[error("{path} in project_root cannot be read: {reason}")]
    Read { path: String, reason: String },
    #[error("{0}")]
    Sandbox(#[from] ToolError),
}

impl From<SeedError> for ToolError {
    fn from(error: SeedError) -> Self {
        match error {
            SeedError::Sandbox(error) => error,
            error => Self::Unavailable(error.to_string()),
        }
    }
}
