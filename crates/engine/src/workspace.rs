//! Kept workspaces: trees with a name, which outlive the machines that use them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::SandboxId;

const LENGTHS: std::ops::RangeInclusive<usize> = 2..=64;

/// Lower-case letters, digits and inner dashes: safe in a path, a URL and a DNS label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspaceId(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a workspace's name: use a-z, 0-9 and inner -, from 2 to 64 characters")]
pub struct InvalidWorkspaceId(pub String);

impl WorkspaceId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkspaceId {
    type Err = InvalidWorkspaceId;

    fn from_str(text: &str) -> Result<Self, InvalidWorkspaceId> {
        let outer = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let inner = |b: u8| b == b'-' || outer(Some(b));
        let clean = LENGTHS.contains(&text.len())
            && text.bytes().all(inner)
            && outer(text.bytes().next())
            && outer(text.bytes().last());
        if clean {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidWorkspaceId(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for WorkspaceId {
    type Error = InvalidWorkspaceId;

    fn try_from(text: String) -> Result<Self, InvalidWorkspaceId> {
        text.parse()
    }
}

impl From<WorkspaceId> for String {
    fn from(id: WorkspaceId) -> Self {
        id.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceInfo {
    pub id: WorkspaceId,
    /// What it takes on disk.
    pub bytes: u64,
    /// What it may take; none where nothing holds it to that.
    pub quota_bytes: Option<u64>,
    /// Machines that have it, alive or not yet destroyed.
    pub in_use_by: Vec<SandboxId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_inner_dashes() {
        let longest = "a".repeat(64);
        for good in ["ab", "a1", "my-project", "0-0", "a--b", &longest] {
            assert!(good.parse::<WorkspaceId>().is_ok(), "{good} was refused");
        }
        let too_long = "a".repeat(65);
        for bad in [
            "", "a", "-a", "a-", "..", "a/b", "../ab", ".ab", "Ab", "a_b", "a b", "ab\n", "ab\0",
            "äb", &too_long,
        ] {
            assert!(bad.parse::<WorkspaceId>().is_err(), "{bad:?} was accepted");
        }
        assert!(WorkspaceId::try_from("a/b".to_owned()).is_err());
    }
}
