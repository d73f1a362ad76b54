//! Names of branches and tags, and hashes of commits.

use super::super::SeedError;
use super::super::limits::MAX_REVISION_BYTES;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

impl Revision {
    /// As git checks names of references, and nothing that computes one (`~`, `^`, `@{`).
    pub fn parse(text: &str) -> Result<Self, SeedError> {
        if text.is_empty() || text.len() > MAX_REVISION_BYTES {
            return Err(SeedError::Revision("it is empty or too long"));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@#=%,!&".contains(&byte);
        if !text.bytes().all(|byte| plain(byte) || !byte.is_ascii()) {
            return Err(SeedError::Revision("it has characters that no branch, tag or hash has"));
        }
        let parts = ["..", "//", "@{", "/.", ".lock/"];
        let ends = text.ends_with(['/', '.']) || text.ends_with(".lock");
        if text.starts_with(['-', '/', '.'])
            || text == "@"
            || ends
            || parts.iter().any(|part| text.contains(part))
        {
            return Err(SeedError::Revision("it is no name of a branch or tag, and no hash"));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How it is asked for.
    pub(super) fn how(&self) -> &'static str {
        let is_hex = self.0.bytes().all(|byte| byte.is_ascii_hexdigit());
        match self.0.len() {
            40 | 64 if is_hex => "hash",
            // It may be a branch as well.
            7..=63 if is_hex => "short",
            _ => "name",
        }
    }
}
