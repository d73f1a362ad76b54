//! What is said about archives of the workspace.

use serde::{Deserialize, Serialize};

/// The comment at the end of an archive, as JSON: what it does not have, or not as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveReport {
    pub entries: u64,
    /// Sockets, pipes and devices, and what is below the deepest directories.
    pub skipped: Told,
    pub unreadable: Told,
    /// Files that became shorter while they were read; zeros stand for what was missing.
    pub changed: Told,
}

/// How many, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    pub count: u64,
    pub paths: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    pub entries: u64,
    /// Of files.
    pub bytes: u64,
}
