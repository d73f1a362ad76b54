//! Searching the workspace; the runner's lines are the answer.

use axum::extract::State;
use axum::response::Response;
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::{NamePattern, NameSearch, SearchCase, SearchOrder, TextSearch};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::path_rule;
use crate::app::App;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, SandboxPath, Strict};
use crate::records::ndjson;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NameQuery {
    pattern: String,
    /// `text` (a part of the name, the default), `glob` (of the name, or of the path when it has a
    /// `/`) or `regex`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    kind: NamePattern,
    /// The directory to search; the whole workspace when absent.
    #[serde(default)]
    path: String,
    /// `sensitive`, `insensitive` or `smart`, the default: insensitive unless the pattern has a
    /// capital letter.
    #[serde(default = "smart")]
    #[param(value_type = Option<String>)]
    case: SearchCase,
    /// How many levels down.
    depth: Option<u64>,
    /// At most so many names: 10 000 when absent, 1 000 000 at most.
    limit: Option<u64>,
    /// At most so long: 30 s when absent, 300 s at most.
    time_ms: Option<u64>,
    /// Also names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Also what `.gitignore` and `.ignore` exclude.
    #[serde(default)]
    ignored: bool,
    /// `found` (as they are found, the default) or `path`, which takes longer.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    sort: SearchOrder,
}

fn smart() -> SearchCase {
    SearchCase::Smart
}

/// Search for names of files and directories. Lines are `{"path","kind"}`, with `pathHex` where a
/// path is not UTF-8. The last one is `{"end":{"matches","nodes","truncated","reason",…}}`, where
/// `reason` is `limit`, `time` or `nodes` when it was cut; an answer without it broke off.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/search:names", tag = "files",
    params(("id" = String, Path), NameQuery),
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn names(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Query(query): Query<NameQuery>,
) -> ApiResult<Response> {
    check_path(&query.path)?;
    let search = NameSearch {
        pattern: query.pattern,
        kind: query.kind,
        path: query.path,
        case: query.case,
        depth: query.depth,
        limit: query.limit,
        time_ms: query.time_ms,
        hidden: query.hidden,
        ignored: query.ignored,
        sort: query.sort,
    };
    let permit = app.streams().open()?;
    let attached = app.orchestrator().attach(&id).await?;
    let search = &search;
    let records = attached
        .run(|client| async move { client.search_names(search).await })
        .await
        .map_err(with_hint)?;
    Ok(ndjson(app, permit, attached, records))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = TextSearch)]
pub(super) struct TextBody {
    /// A regular expression, as ripgrep's.
    pattern: String,
    /// The pattern is the text itself.
    #[serde(default)]
    literal: bool,
    /// `sensitive` (the default), `insensitive` or `smart`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    case: SearchCase,
    /// Only whole words.
    #[serde(default)]
    word: bool,
    /// Matches may go over several lines; files of more than 8 MiB are skipped then.
    #[serde(default)]
    multiline: bool,
    /// A directory or a file; the whole workspace when absent.
    #[serde(default)]
    path: String,
    /// Only files that match one of them, and none that matches one behind a `!`.
    #[serde(default)]
    globs: Vec<String>,
    /// Kinds of files by ripgrep's names, such as `rust`, or `!rust`.
    #[serde(default)]
    types: Vec<String>,
    /// Lines of context before each match.
    #[serde(default)]
    before: u64,
    /// And after it.
    #[serde(default)]
    after: u64,
    /// Also files and directories whose names begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Also what `.gitignore` and `.ignore` exclude.
    #[serde(default)]
    ignored: bool,
    /// At most so many matches of one file.
    max_per_file: Option<u64>,
    /// At most so many in all: 10 000 when absent, 1 000 000 at most.
    limit: Option<u64>,
    /// Larger files are skipped: 4 GiB when absent and at most.
    max_file_bytes: Option<u64>,
    /// Longer lines are cut: 2 KiB when absent, 64 KiB at most.
    max_line_bytes: Option<u64>,
    /// At most so long: 30 s when absent, 300 s at most.
    time_ms: Option<u64>,
    /// `found` (as they are found, the default) or `path`, which takes longer.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    sort: SearchOrder,
}

/// Search for text in files. Lines are
/// `{"match":{"path","line","offset","text","ranges":[[start,end],…]}}` and `{"context":{…}}`; those
/// of one file are together. Ranges are in bytes of the line. A line that was cut has its length as
/// `cut` and the beginning of `text` in it as `textAt`; one that is not UTF-8 is `lossy`. The last
/// line is `{"end":{"matches","filesSearched","filesMatched","skipped":{…},"bytes","truncated",
/// "reason",…}}`, where `reason` is `limit`, `time`, `bytes` or `nodes` when it was cut; an answer
/// without it broke off.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/search:text", tag = "files",
    params(("id" = String, Path)), request_body = TextBody,
    responses((status = 200, body = String, content_type = "application/x-ndjson"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn text(
    State(app): State<App>,
    SandboxPath(id): SandboxPath,
    Strict(body): Strict<TextBody>,
) -> ApiResult<Response> {
    check_path(&body.path)?;
    let search = TextSearch {
        pattern: body.pattern,
        literal: body.literal,
        case: body.case,
        word: body.word,
        multiline: body.multiline,
        path: body.path,
        globs: body.globs,
        types: body.types,
        before: body.before,
        after: body.after,
        hidden: body.hidden,
        ignored: body.ignored,
        max_per_file: body.max_per_file,
        limit: body.limit,
        max_file_bytes: body.max_file_bytes,
        max_line_bytes: body.max_line_bytes,
        time_ms: body.time_ms,
        sort: body.sort,
    };
    let permit = app.streams().open()?;
    let attached = app.orchestrator().attach(&id).await?;
    let search = &search;
    let records = attached
        .run(|client| async move { client.search_text(search).await })
        .await
        .map_err(with_hint)?;
    Ok(ndjson(app, permit, attached, records))
}

fn check_path(path: &str) -> ApiResult<()> {
    if path.is_empty() { Ok(()) } else { path_rule::any(path).map(drop) }
}

fn with_hint(error: OrchestratorError) -> ApiError {
    let error = ApiError::from(error);
    if error.code == "invalid" && error.hint.is_none() {
        return error.with_hint(
            "set `literal` (or `kind=text`) to search for the text as it stands; in a regular \
             expression or a glob, put a backslash before a special character",
        );
    }
    error
}
