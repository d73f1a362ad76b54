//! Search by name.

use axum::extract::State;
use http::StatusCode;
use sandbank_protocol::{FaultCode, NamePattern, NameRecord, NameSearch, SearchCase, SearchOrder};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::{Detail, refused};
use super::path;
use super::place::{Place, Refusal};
use super::query::Parameters;
use crate::app::App;
use crate::error::ApiResult;
use crate::limits::{MAX_WORKSPACE_FOUND, WORKSPACE_SEARCH_DEPTH};
use crate::reply::Reply;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Found {
    results: Vec<FoundEntry>,
    pattern: String,
    path: String,
    /// Only there when results are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FoundEntry {
    name: String,
    path: String,
    /// Empty at the root.
    dir: String,
}

/// Files and directories by name: a glob, or a part of the name, in any case.
#[utoipa::path(get, path = "/api/search", tag = "workspace",
    params(("q" = String, Query), ("path" = Option<String>, Query)),
    responses((status = 200, body = Found), (status = "default", body = Detail)))]
pub(super) async fn search(
    State(app): State<App>,
    parameters: Parameters,
) -> ApiResult<Reply<Found>> {
    let pattern = parameters.not_empty("q")?;
    let asked = parameters.directory();
    let is_glob = pattern.contains(['*', '?', '[']);
    let search = &NameSearch {
        pattern: pattern.to_owned(),
        kind: if is_glob { NamePattern::Glob } else { NamePattern::Text },
        path: path::clean(asked)?,
        case: SearchCase::Insensitive,
        depth: Some(WORKSPACE_SEARCH_DEPTH),
        limit: Some(MAX_WORKSPACE_FOUND),
        time_ms: None,
        hidden: true,
        ignored: true,
        sort: SearchOrder::Path,
    };
    let place = Place::of(&app).await?;
    let found = place.run(|client| async move {
        let mut stream = client.search_names(search).await?;
        let (mut results, mut truncated) = (Vec::new(), true);
        while let Some(lines) = stream.next().await? {
            for record in lines.records {
                match record {
                    NameRecord::Entry(found) => results.push(entry(&found.path)),
                    NameRecord::End(end) => truncated = end.end.truncated,
                }
            }
        }
        Ok((results, truncated))
    });
    let (results, truncated) = found.await.map_err(|refusal| match refusal {
        Refusal::Fault(FaultCode::OutsideWorkspace, _) => path::traversal(asked),
        Refusal::Fault(FaultCode::NotFound, _) => {
            let message = format!("Path not found: {asked}");
            refused(StatusCode::NOT_FOUND, "not_found", message)
        }
        other => other.into(),
    })?;
    let pattern = pattern.to_owned();
    Ok(Reply(Found { results, pattern, path: asked.to_owned(), truncated }))
}

fn entry(found: &str) -> FoundEntry {
    FoundEntry {
        name: path::base_name(found).to_owned(),
        dir: path::parent(found).to_owned(),
        path: found.to_owned(),
    }
}
