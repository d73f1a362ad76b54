//! What was uploaded, and what was left out and why.

use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UploadReport {
    pub files: u64,
    pub bytes: u64,
    pub skipped: Skipped,
}

/// Counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// With all that is in them.
    pub directories: u64,
    /// Files, and directories with all that is in them.
    pub secrets: u64,
    pub links: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
    pub untracked: u64,
    pub not_included: u64,
    pub long_paths: u64,
    pub unreadable: u64,
    /// Gone, or no plain file any more, when it was their turn.
    pub vanished: u64,
}
