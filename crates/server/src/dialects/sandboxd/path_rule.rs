//! Which paths a client may name. The runner resolves them, by descriptor; this only refuses
//! early what could never be meant, with sandboxd's own words.

use sandbank_protocol::{WORKSPACE, WORKSPACE_ALIASES};

use crate::error::{ApiError, ApiResult};
use crate::limits::MAX_PATH_BYTES;

/// For `files:read` and `files:write`: absolute, below the workspace under one of its names.
pub(super) fn absolute(path: &str) -> ApiResult<&str> {
    let roots = std::iter::once(WORKSPACE).chain(WORKSPACE_ALIASES);
    match roots.into_iter().find_map(|root| rest_below(path, root)) {
        None => Err(ApiError::bad_request(
            "outside_workspace",
            format!("Path must be under {WORKSPACE}"),
        )),
        Some(rest) if rest.bytes().all(|b| b == b'/') => Err(invalid()),
        Some(_) => plain(path),
    }
}

/// `/workspaceX` is not below `/workspace`.
fn rest_below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// For our own routes: also relative to the workspace, and the workspace itself.
pub(super) fn any(path: &str) -> ApiResult<&str> {
    if path.is_empty() {
        return Err(ApiError::bad_request("path_required", "path is required."));
    }
    plain(path)
}

fn plain(path: &str) -> ApiResult<&str> {
    let climbs = path.split('/').any(|component| component == "..");
    if climbs || path.contains('\0') || path.len() > MAX_PATH_BYTES {
        return Err(invalid());
    }
    Ok(path)
}

fn invalid() -> ApiError {
    ApiError::bad_request("invalid_path", "Invalid path.")
        .with_hint(format!("name a file like {WORKSPACE}/dir/file, without `..`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_any_name_of_the_workspace_pass() {
        for good in [
            "/vercel/sandbox/workspace/a",
            "/vercel/sandbox/workspace/a/b..c/..d",
            "/workspace/a",
            "/home/user/.profile",
            "/vercel/sandbox/workspace/ü\n",
        ] {
            assert!(absolute(good).is_ok(), "{good} was refused");
        }
    }

    #[test]
    fn everything_else_is_refused_with_sandboxds_words() {
        let long = format!("{WORKSPACE}/{}", "x".repeat(5000));
        for (bad, code) in [
            ("", "outside_workspace"),
            ("a", "outside_workspace"),
            ("/etc/passwd", "outside_workspace"),
            ("/vercel/sandbox/workspaceX/f", "outside_workspace"),
            ("/home/user2/f", "outside_workspace"),
            ("//vercel/sandbox/workspace/f", "outside_workspace"),
            ("/vercel/sandbox/workspace", "invalid_path"),
            ("/vercel/sandbox/workspace/", "invalid_path"),
            ("/vercel/sandbox/workspace/../f", "invalid_path"),
            ("/workspace/a/..", "invalid_path"),
            ("/workspace/a\0b", "invalid_path"),
            (&long, "invalid_path"),
        ] {
            assert_eq!(absolute(bad).unwrap_err().code, code, "{bad:?}");
        }
        let error = absolute("/etc/passwd").unwrap_err();
        assert_eq!(error.message, "Path must be under /vercel/sandbox/workspace");
    }

    #[test]
    fn our_own_routes_take_relative_paths_but_none_that_climbs() {
        for good in [".", "a/b", "/workspace", "a..b"] {
            assert!(any(good).is_ok(), "{good} was refused");
        }
        for bad in ["", "..", "a/../b", "a\0"] {
            assert!(any(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
