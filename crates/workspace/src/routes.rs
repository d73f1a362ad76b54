//! What may be asked of a runner over the network: its routes by their first word, and no tunnels.

use http::Method;

/// The first part of a path, and the methods below it.
const ALLOWED: &[(&str, &[Method])] = &[
    ("hello", &[Method::GET]),
    ("stats", &[Method::GET]),
    ("environment", &[Method::PUT]),
    ("commands", &[Method::GET, Method::POST]),
    ("files", &[Method::GET, Method::PUT, Method::POST, Method::DELETE]),
    ("search", &[Method::GET, Method::POST]),
    ("git", &[Method::GET, Method::POST]),
];

/// The longest path with its query.
const MAX_PATH_BYTES: usize = 16 << 10;

pub(crate) fn is_allowed(method: &Method, path: &str) -> bool {
    let bare = path.split('?').next().unwrap_or_default();
    let first = bare.strip_prefix('/').and_then(|rest| rest.split('/').next());
    path.len() <= MAX_PATH_BYTES
        && !bare.contains("..")
        && ALLOWED.iter().any(|(word, methods)| first == Some(word) && methods.contains(method))
}

/// A request that changes something, whatever HTTP says about repeating it.
pub(crate) fn changes(method: &Method) -> bool {
    method != Method::GET && method != Method::HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runners_routes_are_allowed_and_nothing_else_is() {
        for (method, path) in [
            (Method::GET, "/hello"),
            (Method::POST, "/commands/x/stdin?offset=0"),
            (Method::PUT, "/files?path=/a/../b"),
            (Method::DELETE, "/files?path=a"),
        ] {
            assert!(is_allowed(&method, path), "{method} {path} was refused");
        }
        for (method, path) in [
            (Method::CONNECT, "/hello"),
            (Method::TRACE, "/files"),
            (Method::PATCH, "/files"),
            (Method::DELETE, "/commands/x"),
            (Method::GET, "/"),
            (Method::GET, ""),
            (Method::GET, "hello"),
            (Method::GET, "/hello/../files"),
            (Method::GET, "//hello"),
            (Method::GET, "/filesystem"),
            (Method::GET, &format!("/files?path={}", "x".repeat(20_000))),
        ] {
            assert!(!is_allowed(&method, path), "{method} {path:.40} was allowed");
        }
    }
}
