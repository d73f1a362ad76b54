//! Searching the workspace: for names, and for text in files.
//!
//! Answers are lines of JSON, handed on to clients as they are. The last one is always the end: an
//! answer without it was cut. Paths are relative to the workspace and begin with none of its names.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::FileKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchCase {
    #[default]
    Sensitive,
    Insensitive,
    /// Insensitive unless the pattern has a capital letter.
    Smart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchOrder {
    /// As they are found, by several threads.
    #[default]
    Found,
    /// By path, by one thread.
    Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamePattern {
    /// A part of the last name.
    #[default]
    Text,
    /// Of the last name, or of the whole path when it has a `/`.
    Glob,
    /// Found in the last name.
    Regex,
}

/// `GET /search/names`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameSearch {
    pub pattern: String,
    pub kind: NamePattern,
    /// The directory to search; the workspace when empty.
    pub path: String,
    pub case: SearchCase,
    /// Levels below the directory; all when absent.
    pub depth: Option<u64>,
    pub limit: Option<u64>,
    pub time_ms: Option<u64>,
    /// Also names that begin with a dot.
    pub hidden: bool,
    /// Also what `.gitignore` and `.ignore` exclude.
    pub ignored: bool,
    pub sort: SearchOrder,
}

/// `POST /search/text`. Numbers that are absent are the runner's own limits, or its defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TextSearch {
    pub pattern: String,
    /// The pattern is the text itself, no regular expression.
    #[serde(default)]
    pub literal: bool,
    #[serde(default)]
    pub case: SearchCase,
    /// Only whole words.
    #[serde(default)]
    pub word: bool,
    /// A match may go over several lines.
    #[serde(default)]
    pub multiline: bool,
    /// A directory or a file; the workspace when empty.
    #[serde(default)]
    pub path: String,
    /// Only files that match one of them; those that match one behind a `!` not at all.
    #[serde(default)]
    pub globs: Vec<String>,
    /// Kinds of files, such as `rust`; behind a `!` not those.
    #[serde(default)]
    pub types: Vec<String>,
    /// Lines of context.
    #[serde(default)]
    pub before: u64,
    #[serde(default)]
    pub after: u64,
    #[serde(default)]
    pub hidden: bool,
    #[serde(default)]
    pub ignored: bool,
    #[serde(default)]
    pub max_per_file: Option<u64>,
    #[serde(default)]
    pub limit: Option<u64>,
    #[serde(default)]
    pub max_file_bytes: Option<u64>,
    #[serde(default)]
    pub max_line_bytes: Option<u64>,
    #[serde(default)]
    pub time_ms: Option<u64>,
    #[serde(default)]
    pub sort: SearchOrder,
}

/// Why a search ended before everything was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchCut {
    /// There is more than `limit`.
    Limit,
    Time,
    /// Too much was read.
    Bytes,
    /// There are too many entries to look at.
    Nodes,
}

/// A line of the answer to a [`NameSearch`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NameRecord<'a> {
    Entry(FoundName<'a>),
    End(NameSearchEnd),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FoundName<'a> {
    /// Lossy where it is not UTF-8; `pathHex` then has the exact bytes.
    pub path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    pub kind: FileKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameSearchEnd {
    pub end: NameSearchTally,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameSearchTally {
    pub matches: u64,
    /// Entries looked at.
    pub nodes: u64,
    /// Directories that could not be read.
    pub unreadable: u64,
    /// Ignore-files that are too large, or too many, to be heeded.
    pub unheeded: u64,
    pub truncated: bool,
    pub reason: Option<SearchCut>,
    pub elapsed_ms: u64,
}

/// A line of the answer to a [`TextSearch`]. Those of one file are not mixed with another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRecord<'a> {
    Match(FoundLine<'a>),
    Context(FoundLine<'a>),
    End(TextSearchTally),
}

/// A line, or the lines of one match that goes over several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FoundLine<'a> {
    pub path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// Of the first line, from 1.
    pub line: u64,
    /// Where the line begins in the file, in bytes. In a file that begins with a byte order mark,
    /// of its text without it, as UTF-8.
    pub offset: u64,
    /// Without the line end.
    pub text: Cow<'a, str>,
    /// Where `text` begins in a line that was cut, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub text_at: u64,
    /// The length of a line that was cut, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// Some bytes of the line are no UTF-8: `text` has U+FFFD for them, so its own offsets differ.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
    /// Beginning and end of each match, in bytes from the beginning of the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<(u64, u64)>,
    /// There are more matches in the line than `ranges` tells.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_ranges: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TextSearchTally {
    /// Records of kind `match`.
    pub matches: u64,
    pub files_searched: u64,
    pub files_matched: u64,
    pub skipped: SkippedFiles,
    pub bytes: u64,
    /// Entries looked at.
    pub nodes: u64,
    /// Ignore-files that are too large, or too many, to be heeded.
    pub unheeded: u64,
    pub truncated: bool,
    pub reason: Option<SearchCut>,
    pub elapsed_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkippedFiles {
    /// With a NUL byte; what came long before it was searched.
    pub binary: u64,
    /// Files, or lines in them. What came before such a line was searched.
    pub too_large: u64,
    /// Files and directories.
    pub unreadable: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
    /// Symbolic links, which are not followed.
    pub links: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}
