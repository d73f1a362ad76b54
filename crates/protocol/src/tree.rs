//! The lines of a walk through a tree: an entry each, and at last how it ended.

use serde::{Deserialize, Serialize};

use crate::FileKind;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Line")]
pub enum TreeRecord {
    Entry(TreeEntry),
    End(TreeEnd),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Relative to the workspace. Lossy where it is not UTF-8; `path_hex` then has the exact bytes.
    pub path: String,
    pub path_hex: Option<String>,
    pub kind: FileKind,
    /// This and what follows only where it was asked for and the entry was still there.
    pub size: Option<u64>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Unix time in milliseconds.
    pub modified_ms: Option<i64>,
    /// Of a symbolic link.
    pub target: Option<String>,
}

/// How a walk ended. Without this line it was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeEnd {
    /// Whether there is more than was told.
    pub truncated: bool,
    pub reason: Option<TreeLimit>,
    /// Entries told.
    pub visited: u64,
    /// Directories that could not be read, or no longer as themselves, and the first of them.
    pub unreadable: u64,
    pub unreadable_paths: Vec<String>,
}

/// What a walk reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeLimit {
    Nodes,
    Depth,
    Time,
    Bytes,
}

/// `{"end": …}`, the last line.
#[derive(Debug, Serialize)]
pub struct TreeEndLine<'a> {
    pub end: &'a TreeEnd,
}

/// Both kinds of lines in one, because telling them apart by trial would read each line twice.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    path: Option<String>,
    path_hex: Option<String>,
    kind: Option<FileKind>,
    size: Option<u64>,
    mode: Option<u32>,
    modified_ms: Option<i64>,
    target: Option<String>,
    end: Option<TreeEnd>,
}

impl TryFrom<Line> for TreeRecord {
    type Error = &'static str;

    fn try_from(line: Line) -> Result<Self, Self::Error> {
        let Line { path, path_hex, kind, size, mode, modified_ms, target, end } = line;
        match (path, kind, end) {
            (Some(path), Some(kind), None) => {
                Ok(Self::Entry(TreeEntry { path, path_hex, kind, size, mode, modified_ms, target }))
            }
            (None, None, Some(end))
                if path_hex.is_none()
                    && size.is_none()
                    && mode.is_none()
                    && modified_ms.is_none()
                    && target.is_none() =>
            {
                Ok(Self::End(end))
            }
            _ => Err("it is neither an entry nor an end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_entry_or_the_end_and_never_both_or_neither() {
        let read = |text: &str| serde_json::from_str::<TreeRecord>(text);
        let entry = read(r#"{"path":"a/b","kind":"file","size":3}"#).unwrap();
        assert!(matches!(entry, TreeRecord::Entry(entry) if entry.size == Some(3)));
        let end = r#"{"truncated":true,"reason":"nodes","visited":1,"unreadable":0,"unreadablePaths":[]}"#;
        let ended = read(&format!(r#"{{"end":{end}}}"#)).unwrap();
        assert!(matches!(ended, TreeRecord::End(end) if end.reason == Some(TreeLimit::Nodes)));
        for odd in [
            "{}".to_owned(),
            r#"{"path":"a"}"#.to_owned(),
            r#"{"path":"a","kind":"file","script":1}"#.to_owned(),
            format!(r#"{{"path":"a","kind":"file","end":{end}}}"#),
            format!(r#"{{"size":1,"end":{end}}}"#),
        ] {
            assert!(read(&odd).is_err(), "{odd}");
        }
    }
}
