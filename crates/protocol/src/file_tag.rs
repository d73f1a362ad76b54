//! Which version of a file somebody has seen.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Equal as long as nothing has replaced or changed the file, as far as the kernel's clocks tell:
/// a replacement is another inode, and a change moves a time that nobody can set back.
///
/// To clients it is an opaque text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTag {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// Both in nanoseconds since 1970.
    pub modified_ns: i64,
    pub changed_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a version of a file")]
pub struct InvalidFileTag;

impl fmt::Display for FileTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, inode, size, modified_ns, changed_ns } = self;
        write!(f, "{device:x}-{inode:x}-{size:x}-{modified_ns:x}-{changed_ns:x}")
    }
}

impl FromStr for FileTag {
    type Err = InvalidFileTag;

    /// Only what `Display` writes.
    fn from_str(text: &str) -> Result<Self, InvalidFileTag> {
        let mut numbers = text.split('-').map(|part| u64::from_str_radix(part, 16));
        let mut next = || numbers.next().and_then(Result::ok).ok_or(InvalidFileTag);
        let tag = Self {
            device: next()?,
            inode: next()?,
            size: next()?,
            modified_ns: next()?.cast_signed(),
            changed_ns: next()?.cast_signed(),
        };
        if tag.to_string() == text { Ok(tag) } else { Err(InvalidFileTag) }
    }
}

impl Serialize for FileTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileTag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_text_and_nothing_else_is_a_tag() {
        let tag = FileTag { device: 1, inode: 0xab, size: 0, modified_ns: -1, changed_ns: 9 };
        let text = tag.to_string();
        assert_eq!(text, "1-ab-0-ffffffffffffffff-9");
        assert_eq!(text.parse(), Ok(tag));
        assert_eq!(serde_json::from_str::<FileTag>(&format!("{text:?}")).unwrap(), tag);
        for other in
            ["", "1-2-3-4", "1-2-3-4-5-6", "01-2-3-4-5", "1-2-3-4-G", "+1-2-3-4-5", "1-2-3-4-5 "]
        {
            assert_eq!(other.parse::<FileTag>(), Err(InvalidFileTag), "{other}");
        }
    }
}
