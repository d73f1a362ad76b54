//! Paths that end in `:verb`, as in `/v1/sandboxes/{id}:stop`.
//!
//! The router matches whole segments, so before routing the verb becomes a segment of its own.
//! The same function makes the router's path from the documented one. A client cannot name the
//! inner path: its marker leads nowhere from outside.

use http::Uri;
use http::uri::PathAndQuery;

const PREFIX: &str = "/v1/sandboxes/";
const MARK: char = '~';
const NOWHERE: &str = "/~";

/// `/v1/sandboxes/x/files:read` becomes `/v1/sandboxes/x/files/~read`.
pub(crate) fn split(path: &str) -> Option<String> {
    let rest = path.strip_prefix(PREFIX)?;
    if rest.split('/').any(|segment| segment.starts_with(MARK)) {
        return Some(NOWHERE.to_owned());
    }
    let (start, last) = path.rsplit_once('/')?;
    let (name, verb) = last.rsplit_once(':')?;
    (!name.is_empty() && !verb.is_empty()).then(|| format!("{start}/{name}/{MARK}{verb}"))
}

/// Does that to a request's target.
pub(crate) fn rewrite(uri: &mut Uri) {
    let Some(path) = split(uri.path()) else { return };
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let Ok(target) = PathAndQuery::try_from(target) else { return };
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = Some(target);
    *uri = Uri::from_parts(parts).expect("only the path differs from a valid target");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_become_segments_and_nothing_else_changes() {
        for (path, inner) in [
            ("/v1/sandboxes/sb1:stop", Some("/v1/sandboxes/sb1/~stop")),
            ("/v1/sandboxes/a/commands/c:kill", Some("/v1/sandboxes/a/commands/c/~kill")),
            ("/v1/sandboxes/{id}/files:read", Some("/v1/sandboxes/{id}/files/~read")),
            ("/v1/sandboxes/a/~stop", Some("/~")),
            ("/v1/sandboxes/a/~stop/x:y", Some("/~")),
            ("/v1/sandboxes/a", None),
            ("/v1/sandboxes/:stop", None),
            ("/v1/sandboxes/a:", None),
            ("/v1/sandboxes/a:b/c", None),
            ("/v1/images/node:24", None),
            ("/v1/images:import", None),
        ] {
            assert_eq!(split(path).as_deref(), inner, "{path}");
        }
    }

    #[test]
    fn the_query_stays() {
        let mut uri: Uri = "/v1/sandboxes/a/files:read?path=/x:y".parse().unwrap();
        rewrite(&mut uri);
        assert_eq!(uri, "/v1/sandboxes/a/files/~read?path=/x:y");
        let mut uri: Uri = "http://localhost/v1/sandboxes/a:stop".parse().unwrap();
        rewrite(&mut uri);
        assert_eq!(uri, "http://localhost/v1/sandboxes/a/~stop");
    }
}
