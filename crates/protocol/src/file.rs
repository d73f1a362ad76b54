//! Files below the workspace. Paths are absolute below one of the workspace's names, or
//! relative to it; only the runner resolves them.

use serde::{Deserialize, Serialize};

use crate::FileTag;

/// Response header of a raw read: the [`FileStat`] of what is being sent, as JSON.
pub const FILE_STAT_HEADER: &str = "x-sandbank-stat";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    pub kind: FileKind,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Unix time in milliseconds.
    pub modified_ms: i64,
    /// Runners of earlier releases do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<FileTag>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Lossy where the name is not UTF-8; `name_hex` then has the exact bytes.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_hex: Option<String>,
    #[serde(flatten)]
    pub stat: FileStat,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Sorted by name; `truncated` when the directory has more than the runner's limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirListing {
    pub entries: Vec<FileEntry>,
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MkdirRequest {
    pub path: String,
    /// Make missing parents, and accept an existing directory.
    #[serde(default)]
    pub parents: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRequest {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    pub from: String,
    pub to: String,
    #[serde(default)]
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChmodRequest {
    pub path: String,
    /// The nine permission bits.
    pub mode: u32,
    /// Also everything below a directory.
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub files: u64,
    pub bytes: u64,
}
