//! The tools of a model over HTTP: one route per tool, and what they are.
//!
//! The gates of `sandbank_tools` stand before every call, behind the daemon's own. Every answer
//! but those about approvals says in a header whether the tools are there for this caller.

mod admission;
mod approvals;
mod build;
mod call;
mod error;
mod list;
mod measured;
mod session;
mod stream;

use http::{HeaderMap, HeaderName, HeaderValue};
use utoipa_axum::routes;

use crate::auth::{Access, Scope};
use crate::routes::Routes;
pub(in crate::dialects) use admission::{OWNED, facts};
pub(crate) use build::build;
pub(in crate::dialects) use error::{closed, of as refusal};
pub(in crate::dialects) use measured::register;

const USE: Access = Access::Tools(Scope::Sandbox);
const LOOK: Access = Access::Token(Scope::ReadOnly);
const DECIDE: Access = Access::Token(Scope::Admin);

/// `1` where this caller has tools, else `0`.
const ENABLED: HeaderName = HeaderName::from_static("x-remcochat-bash-tools-enabled");

/// Adds every route of this dialect.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .add(USE, routes!(list::tools))
        .add(USE, routes!(call::call))
        .add(USE, routes!(session::reset))
        .add(LOOK, routes!(approvals::list))
        .add(LOOK, routes!(approvals::find))
        .add(DECIDE, routes!(approvals::decide))
}

/// Whether errors of this path have this dialect's body.
pub(crate) fn is_ours(path: &str) -> bool {
    path == "/api/tools" || path.starts_with("/api/tools/")
}

/// Whether every answer of this path says if its caller has tools. Who decides about calls has other rights.
pub(in crate::dialects) fn tells(path: &str) -> bool {
    let approvals = path.strip_prefix("/api/tools/approvals");
    is_ours(path) && !approvals.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// For answers that no handler made: whoever was turned away has no tools.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.entry(ENABLED).or_insert(HeaderValue::from_static("0"));
}

pub(in crate::dialects) fn enabled(is: bool) -> [(HeaderName, HeaderValue); 1] {
    [(ENABLED, HeaderValue::from_static(if is { "1" } else { "0" }))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tools_own_paths_have_their_errors() {
        for path in ["/api/tools", "/api/tools/bash", "/api/tools/session"] {
            assert!(is_ours(path), "{path}");
        }
        for path in ["/api/toolsx", "/api/tree", "/tools", "/"] {
            assert!(!is_ours(path), "{path}");
        }
        assert!(tells("/api/tools/bash") && tells("/api/tools/approvalsx"));
        assert!(!tells("/api/tools/approvals") && !tells("/api/tools/approvals/ta1"));
    }
}
