//! The caller's name for a sandbox.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Trimmed, 1 to 256 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxKey(String);

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("a sandbox key has 1 to {} characters and no control characters", SandboxKey::MAX_CHARS)]
pub struct InvalidKey;

impl SandboxKey {
    pub const MAX_CHARS: usize = 256;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SandboxKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        let fits = !text.is_empty() && text.chars().count() <= Self::MAX_CHARS;
        if fits && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidKey)
        }
    }
}

impl TryFrom<String> for SandboxKey {
    type Error = InvalidKey;

    fn try_from(text: String) -> Result<Self, InvalidKey> {
        text.parse()
    }
}

impl From<SandboxKey> for String {
    fn from(key: SandboxKey) -> Self {
        key.0
    }
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_trimmed_and_bounded() {
        assert_eq!(" chat:1 ".parse::<SandboxKey>().unwrap().as_str(), "chat:1");
        assert!("ü".repeat(256).parse::<SandboxKey>().is_ok());
        for bad in ["", "  ", "a\nb", "a\u{0}b", &"x".repeat(257)] {
            assert!(bad.parse::<SandboxKey>().is_err(), "{bad:?} was accepted");
        }
    }
}
