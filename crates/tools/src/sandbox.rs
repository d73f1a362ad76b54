//! What the tools need of a sandbox, whoever made it.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::Serialize;

use crate::ToolError;

/// Paths are absolute, or relative to the workspace; the sandbox refuses those that leave it.
#[async_trait]
pub trait Sandbox: Send + Sync {
    fn id(&self) -> &str;

    /// Runs a script in a fresh `bash`, in the workspace. When the time is over, it is killed with
    /// all that it started.
    async fn start(&self, script: &str, timeout: Duration) -> Result<Box<dyn Command>, ToolError> {
        self.start_with(script, BTreeMap::new(), timeout).await
    }

    /// The same with variables that only this script has, and that are kept nowhere.
    async fn start_with(
        &self,
        script: &str,
        variables: BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<Box<dyn Command>, ToolError>;

    /// At most `limit` bytes; a longer file is an error that says how long it is.
    async fn read_file(&self, path: &str, limit: u64) -> Result<Bytes, ToolError>;

    /// Replaces the file in one step; directories that are missing are made.
    async fn write_file(&self, path: &str, content: Bytes) -> Result<(), ToolError>;

    /// Unpacks a tar stream into the workspace.
    async fn unpack(&self, archive: BoxStream<'static, io::Result<Bytes>>)
    -> Result<(), ToolError>;

    /// Where a service on `port` is reached from outside.
    async fn url(&self, port: u16) -> Result<String, ToolError>;

    /// What is below a directory, some levels down and at most `limit` entries. Not every provider
    /// can.
    async fn list(&self, _path: &str, _depth: u64, _limit: u64) -> Result<Listing, ToolError> {
        Err(ToolError::Failed("files cannot be listed here; use bash".to_owned()))
    }

    /// Lines of files that match. Not every provider can.
    async fn search(&self, _search: &Search) -> Result<Found, ToolError> {
        Err(ToolError::Failed("files cannot be searched here; use bash".to_owned()))
    }

    /// Whether it can still be used, as far as that is known without asking it.
    async fn is_alive(&self) -> bool {
        true
    }

    /// Ends it. One that is gone already is no error.
    async fn stop(&self) -> Result<(), ToolError>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listing {
    pub entries: Vec<Listed>,
    /// There is more.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Relative to the workspace.
    pub path: String,
    /// `file`, `directory`, `symlink` or `other`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// A regular expression.
    pub pattern: String,
    /// A directory or a file; the workspace when empty.
    pub path: String,
    /// Only files that match it.
    pub glob: Option<String>,
    pub limit: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    pub matches: Vec<FoundLine>,
    /// There are more.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundLine {
    pub path: String,
    /// From 1.
    pub line: u64,
    pub text: String,
}

/// One script that runs.
#[async_trait]
pub trait Command: Send {
    /// What comes next; [`Piece::Ended`] is the last.
    async fn next(&mut self) -> Result<Piece, ToolError>;

    /// Kills it with all that it started; its ending follows.
    async fn kill(&mut self) -> Result<(), ToolError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Stdout(Bytes),
    Stderr(Bytes),
    /// Output that nobody keeps any more.
    Dropped {
        bytes: u64,
    },
    Ended(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    TimedOut,
    /// Nobody can say how it ended.
    Lost(String),
}
