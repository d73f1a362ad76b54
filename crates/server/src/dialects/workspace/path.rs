//! Paths of this dialect: relative to the workspace, cleaned by their letters. What is left is
//! resolved by the runner, by descriptor.

use http::StatusCode;

use super::error::refused;
use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_PATH_BYTES;

/// As the runner takes it; `.` for the workspace itself.
pub(super) fn clean(path: &str) -> ApiResult<String> {
    if path.len() > MAX_PATH_BYTES || path.contains('\0') {
        return Err(traversal(path));
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(kept.pop().ok_or_else(|| traversal(path))?),
            part => kept.push(part),
        }
    }
    let relative = if kept.is_empty() { ".".to_owned() } else { kept.join("/") };
    Ok(if path.starts_with('/') { format!("/{relative}") } else { relative })
}

/// An entry of a directory, both as clients name them.
pub(super) fn join(directory: &str, name: &str) -> String {
    match directory.trim_start_matches("./").trim_end_matches('/') {
        "" | "." => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub(super) fn traversal(path: &str) -> ApiError {
    let shown: String = path.chars().take(200).collect();
    refused(
        StatusCode::BAD_REQUEST,
        "outside_workspace",
        format!("Path traversal detected: {shown}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_by_their_letters() {
        for (path, clean_path) in [
            (".", "."),
            ("", "."),
            ("a/./b//c/", "a/b/c"),
            ("a/../b", "b"),
            ("a/..", "."),
            ("/etc/../etc/passwd", "/etc/passwd"),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(clean(path).unwrap(), clean_path, "{path}");
        }
        let long = "x".repeat(MAX_PATH_BYTES + 1);
        for path in ["..", "../a", "a/../../b", "/..", "a\0b", &long] {
            assert_eq!(clean(path).unwrap_err().code, "outside_workspace", "{path:?}");
        }
    }

    #[test]
    fn entries_are_named_from_the_root() {
        assert_eq!(join(".", "a"), "a");
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("d/e/", "a"), "d/e/a");
        assert_eq!((base_name("d/e"), parent("d/e")), ("e", "d"));
        assert_eq!((base_name("e"), parent("e")), ("e", ""));
    }
}
