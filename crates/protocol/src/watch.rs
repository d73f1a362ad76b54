//! What happens to files below a directory of the workspace.

use serde::{Deserialize, Serialize};

/// One line of a watch. The first is `ready` or, where what came after the wanted number is not
/// known any more, `reset`; the last is `end`, unless the stream was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchEvent {
    /// Grows by one with each change and each reset; of `ready`, `heartbeat` and `end` that of the
    /// last one. With it as `after` a watch goes on.
    pub seq: u64,
    pub kind: WatchKind,
    /// From the workspace; lossy where it is not UTF-8, and `path_hex` has the exact bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// Where a moved one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_dir: Option<bool>,
    /// Of `reset` and `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchKind {
    /// Every change from now on is told.
    Ready,
    Created,
    Modified,
    Removed,
    /// With everything below it.
    Moved,
    /// Changes may be missing: list again.
    Reset,
    Heartbeat,
    /// No more is told.
    End,
}

impl WatchEvent {
    pub fn new(seq: u64, kind: WatchKind) -> Self {
        Self {
            seq,
            kind,
            path: None,
            path_hex: None,
            from: None,
            from_hex: None,
            is_dir: None,
            reason: None,
        }
    }

    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}
