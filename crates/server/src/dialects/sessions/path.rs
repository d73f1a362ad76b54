//! Which paths a client may name: relative ones are below the workspace, absolute ones below
//! `/workspace`. Cleaned by their letters, as Sandkasten does; the runner resolves what is left, by
//! descriptor.

use super::error::invalid;
use crate::error::ApiResult;
use crate::limits::MAX_PATH_BYTES;

/// The workspace as these clients call it.
pub(super) const ROOT: &str = "/workspace";

/// A file's path, relative to the workspace.
pub(super) fn file(path: &str) -> ApiResult<String> {
    let relative = directory(path)?;
    if relative == "." {
        return Err(invalid(format!("invalid path: must be a file under {ROOT}")));
    }
    Ok(relative)
}

/// The same of a directory, which may be the workspace itself: `.`.
pub(super) fn directory(path: &str) -> ApiResult<String> {
    if path.len() > MAX_PATH_BYTES || path.contains('\0') {
        return Err(invalid(format!(
            "invalid path: at most {MAX_PATH_BYTES} bytes, none of them 0"
        )));
    }
    let mut kept: Vec<&str> = Vec::new();
    let outside = || invalid(format!("invalid path: must be under {ROOT}"));
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // Above the root of an absolute path there is only the root.
            ".." if kept.pop().is_none() && !path.starts_with('/') => return Err(outside()),
            ".." => {}
            part => kept.push(part),
        }
    }
    if path.starts_with('/') {
        if kept.first() != Some(&ROOT.trim_start_matches('/')) {
            return Err(outside());
        }
        kept.remove(0);
    }
    Ok(if kept.is_empty() { ".".to_owned() } else { kept.join("/") })
}

/// As answers name it.
pub(super) fn shown(relative: &str) -> String {
    if relative == "." { ROOT.to_owned() } else { format!("{ROOT}/{relative}") }
}

/// A directory of the shell's in the words of these clients.
pub(super) fn of_shell(cwd: &str) -> String {
    let below = cwd.strip_prefix(sandbank_protocol::WORKSPACE);
    match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => format!("{ROOT}{rest}"),
        None => cwd.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_and_stay_below_the_workspace() {
        for (path, clean) in [
            ("a", "a"),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            ("/workspace/a", "a"),
            ("/workspace//./a/../b c", "b c"),
            ("/../workspace/a", "a"),
            ("/workspace/x/../../workspace/a", "a"),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(file(path).unwrap(), clean, "{path}");
        }
        assert_eq!(directory("").unwrap(), ".");
        assert_eq!(directory("/workspace/").unwrap(), ".");
    }

    #[test]
    fn what_leads_elsewhere_or_is_no_file_is_refused() {
        let long = "x".repeat(MAX_PATH_BYTES + 1);
        for path in [
            "",
            ".",
            "/workspace",
            "/workspace/",
            "a/..",
            "..",
            "../a",
            "a/../../b",
            "/etc/passwd",
            "/workspaceX/a",
            "/workspace/../etc/passwd",
            "/",
            "a\0b",
            "/vercel/sandbox/workspace/a",
            &long,
        ] {
            assert!(file(path).is_err(), "{path:?} was accepted");
        }
    }

    #[test]
    fn a_shells_directory_has_one_name() {
        assert_eq!(of_shell("/vercel/sandbox/workspace"), "/workspace");
        assert_eq!(of_shell("/vercel/sandbox/workspace/d"), "/workspace/d");
        assert_eq!(of_shell("/vercel/sandbox/workspaces"), "/vercel/sandbox/workspaces");
        assert_eq!(of_shell("/workspace/d"), "/workspace/d");
        assert_eq!(of_shell("/tmp"), "/tmp");
    }
}
