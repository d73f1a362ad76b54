//! Everything below a directory, as lines of JSON.

use axum::extract::State;
use axum::response::Response;
use sandbank_channel::TreeOptions;
use serde::Deserialize;
use utoipa::IntoParams;

use super::path_rule;
use crate::app::App;
use crate::error::{ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath};
use crate::limits::{DEFAULT_TREE_DEPTH, DEFAULT_TREE_MS, DEFAULT_TREE_NODES};
use crate::records::ndjson;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TreeQuery {
    /// Of a directory below the workspace; the workspace itself when absent.
    #[serde(default)]
    path: String,
    /// Levels told, 20 when absent, at most 256.
    depth: Option<u64>,
    /// Entries told, 10 000 when absent, at most 1 000 000.
    nodes: Option<u64>,
    /// How long it may take, 5 s when absent, at most 30 s.
    time_ms: Option<u64>,
    /// Also sizes, modes, times and targets.
    #[serde(default)]
    stat: bool,
    /// Also names that begin with a dot; true when absent.
    hidden: Option<bool>,
    /// Each directory's entries by name, instead of in the file system's order.
    #[serde(default)]
    sort: bool,
}

/// Everything below a directory. Lines are `{"path","kind"}`, with `size`, `mode`, `modifiedMs` and
/// `target` where asked for and `pathHex` where a path is not UTF-8, and at last
/// `{"end":{"truncated","reason","visited","unreadable","unreadablePaths"}}`. A directory's entries
/// come together, before what is below them. Without the last line it was cut off.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files:tree", tag = "files",
    params(("id" = String, Path), TreeQuery),
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn tree(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<TreeQuery>,
) -> ApiResult<Response> {
    let path = if query.path.is_empty() { "." } else { path_rule::any(&query.path)? };
    let options = TreeOptions {
        depth: query.depth.unwrap_or(DEFAULT_TREE_DEPTH),
        nodes: query.nodes.unwrap_or(DEFAULT_TREE_NODES),
        time_ms: query.time_ms.unwrap_or(DEFAULT_TREE_MS),
        stat: query.stat,
        hidden: query.hidden.unwrap_or(true),
        sort: query.sort,
    };
    let permit = app.streams().open()?;
    let attached = app.orchestrator().attach(&id).await?;
    let records = attached.run(|client| async move { client.tree(path, options).await }).await?;
    Ok(ndjson(app, permit, attached, records))
}
