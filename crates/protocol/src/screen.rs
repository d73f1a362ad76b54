//! What a command's terminal shows.

use serde::{Deserialize, Serialize};

/// The screen as it is after frame `seq`: written to a fresh terminal of this size, `repaint` shows
/// it, and the output numbered above `seq` goes on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Screen {
    pub seq: u64,
    pub rows: u16,
    pub cols: u16,
    pub title: String,
    /// The screen of full-screen programs is shown.
    pub alternate: bool,
    pub cursor: ScreenCursor,
    /// In base64.
    pub repaint: String,
}

/// Counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenCursor {
    pub row: u16,
    pub col: u16,
    pub visible: bool,
}
