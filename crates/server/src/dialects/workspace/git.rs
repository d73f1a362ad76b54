//! The workspace's repository.

use axum::extract::State;
use sandbank_channel::{DiffQuery, StatusQuery};
use sandbank_protocol::{FaultCode, GitChange, GitEntry};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::error::Detail;
use super::path;
use super::place::{Place, Refusal};
use super::query::Parameters;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::reply::Reply;

/// What differs from the last commit: a letter for each path.
#[utoipa::path(get, path = "/api/git/status", tag = "workspace_git",
    responses((status = 200, body = Object), (status = "default", body = Detail)))]
pub(super) async fn status(State(app): State<App>) -> ApiResult<Reply<Value>> {
    let place = Place::of(&app).await?;
    let query = &StatusQuery::default();
    let status = place.run(|client| async move { client.git_status(query).await }).await;
    let status = match status {
        Ok(status) if status.repository.is_repository => status,
        // Without git there is no repository either, as far as the UI is concerned.
        Ok(_) | Err(Refusal::Fault(FaultCode::ProgramMissing, _)) => {
            return Ok(Reply(json!({ "is_repo": false, "files": [] })));
        }
        Err(other) => return Err(other.into()),
    };
    let mut files = Map::new();
    for entry in &status.entries {
        if let Some(letter) = letter(entry) {
            files.insert(entry.path.clone(), json!(letter));
        }
    }
    let mut answer = json!({ "is_repo": true, "available": true, "files": files });
    if status.truncated {
        answer["truncated"] = json!(true);
    }
    Ok(Reply(answer))
}

/// Conflicted before deleted before added before modified before untracked.
fn letter(entry: &GitEntry) -> Option<&'static str> {
    use GitChange as Change;
    let either =
        |change: &[Change]| change.contains(&entry.index) || change.contains(&entry.worktree);
    if entry.conflict {
        Some("C")
    } else if either(&[Change::Deleted]) {
        Some("D")
    } else if either(&[Change::Added]) {
        Some("A")
    } else if either(&[Change::Modified, Change::TypeChanged, Change::Renamed, Change::Copied]) {
        Some("M")
    } else if either(&[Change::Untracked]) {
        Some("U")
    } else {
        None
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Diff {
    diff: String,
    path: String,
    /// Only there when the difference is cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How a file differs from the last commit.
#[utoipa::path(get, path = "/api/git/diff", tag = "workspace_git", params(("path" = String, Query)),
    responses((status = 200, body = Diff), (status = "default", body = Detail)))]
pub(super) async fn diff(State(app): State<App>, parameters: Parameters) -> ApiResult<Reply<Diff>> {
    let asked = parameters.required("path")?;
    let query = &DiffQuery {
        path: path::clean(asked)?,
        staged: false,
        from: Some("HEAD".to_owned()),
        to: None,
    };
    let place = Place::of(&app).await?;
    let answer = place.run(|client| async move { client.git_diff(query).await }).await;
    let path = asked.to_owned();
    Ok(Reply(match answer {
        Ok(answer) => {
            let (truncated, error) = (answer.truncated, answer.repository.reason);
            Diff { diff: answer.diff, path, truncated, error }
        }
        Err(refusal) => {
            let error = Some(said(asked, refusal)?);
            Diff { diff: String::new(), path, truncated: false, error }
        }
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Show {
    content: Option<String>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A file as the last commit has it.
#[utoipa::path(get, path = "/api/git/show", tag = "workspace_git", params(("path" = String, Query)),
    responses((status = 200, body = Show), (status = "default", body = Detail)))]
pub(super) async fn show(State(app): State<App>, parameters: Parameters) -> ApiResult<Reply<Show>> {
    let asked = parameters.required("path")?;
    let file = path::clean(asked)?;
    let place = Place::of(&app).await?;
    let wanted = file.as_str();
    let answer =
        place.run(|client| async move { client.git_show(wanted, Some("HEAD")).await }).await;
    let path = asked.to_owned();
    Ok(Reply(match answer {
        Ok(answer) => {
            // A part is not shown: an editor would save it as the whole.
            let content = answer.content.filter(|_| !answer.truncated);
            let error = match (&content, answer.repository.reason) {
                (Some(_), _) => None,
                (None, Some(reason)) => Some(reason),
                (None, None) if answer.truncated => {
                    Some(format!("Too large: {} bytes", answer.size))
                }
                (None, None) if answer.found => Some("Not UTF-8 text".to_owned()),
                (None, None) => Some("Not in HEAD".to_owned()),
            };
            Show { content, path, error }
        }
        Err(refusal) => Show { content: None, path, error: Some(said(asked, refusal)?) },
    }))
}

/// What Git or the runner refuses is part of the answer; what is the caller's fault is not.
fn said(asked: &str, refusal: Refusal) -> Result<String, ApiError> {
    match refusal {
        Refusal::Fault(FaultCode::OutsideWorkspace, _) => Err(path::traversal(asked)),
        Refusal::Fault(_, error) => Ok(error.message),
        Refusal::Other(error) => Err(error),
    }
}
