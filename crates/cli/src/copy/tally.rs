//! What a copy did.

/// Counts, and what was left out with the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) files: u64,
    pub(crate) directories: u64,
    pub(crate) bytes: u64,
    pub(crate) skipped: Vec<String>,
}
