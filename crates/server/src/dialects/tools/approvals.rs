//! Calls of tools that wait for a person, and those that did. Deciding needs an administrator's token: whoever
//! calls the tools must not be who allows it.

use axum::extract::State;
use http::StatusCode;
use sandbank_store::{ApprovalOutcome, ToolApprovalRow};
use sandbank_tools::approval::{Answer, Desk, DeskError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Once, Segments};
use crate::limits::MAX_LISTED_APPROVALS;
use crate::reply::Reply;
use crate::unix_time::rfc3339;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ToolApproval)]
pub(super) struct ApprovalView {
    id: String,
    session: String,
    tool: String,
    /// What the call would be made with.
    #[schema(value_type = Object)]
    input: Value,
    /// SHA-256 over session, tool and input; a decision names it.
    digest: String,
    /// Why it was asked about or denied.
    rule: String,
    /// `waiting`, `allowed`, `denied`, `expired` (nobody decided in time), `withdrawn` (whoever called went
    /// away) or `abandoned` (the server was restarted; the call was not made).
    status: &'static str,
    /// A token's name, `rule`, `deadline`, `caller` or `restart`.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    asked_at: String,
    /// When the answer is no.
    deadline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<String>,
}

impl From<ToolApprovalRow> for ApprovalView {
    fn from(row: ToolApprovalRow) -> Self {
        Self {
            status: row.outcome.as_str(),
            asked_at: rfc3339(row.asked_at_ms),
            deadline: rfc3339(row.deadline_ms),
            decided_at: row.decided_at_ms.map(rfc3339),
            id: row.id,
            session: row.session,
            tool: row.tool,
            input: row.input,
            digest: row.digest,
            rule: row.rule,
            decided_by: row.decided_by,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolApprovals)]
pub(super) struct ApprovalList {
    /// Those that wait first, then the newest.
    approvals: Vec<ApprovalView>,
    /// How many of them wait.
    waiting: usize,
}

/// Calls that wait for a person, and the last ones that were decided.
#[utoipa::path(get, path = "/api/tools/approvals", tag = "tools",
    responses((status = 200, body = ApprovalList), (status = "default", body = ErrorBody)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<ApprovalList>> {
    let rows = desk(&app)?.list(MAX_LISTED_APPROVALS).await.map_err(refused)?;
    let waiting = rows.iter().filter(|row| row.outcome == ApprovalOutcome::Waiting).count();
    let approvals = rows.into_iter().map(ApprovalView::from).collect();
    Ok(Reply(ApprovalList { approvals, waiting }))
}

/// One of them.
#[utoipa::path(get, path = "/api/tools/approvals/{id}", tag = "tools", params(("id" = String, Path)),
    responses((status = 200, body = ApprovalView), (status = "default", body = ErrorBody)))]
pub(super) async fn find(
    State(app): State<App>,
    segments: Segments,
) -> ApiResult<Reply<ApprovalView>> {
    let row = desk(&app)?.find(segments.get("id")?).await.map_err(refused)?;
    Ok(Reply(row.ok_or_else(|| refused(DeskError::NotFound))?.into()))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolDecision)]
pub(super) struct DecisionBody {
    decision: Decision,
    /// Of the call that was looked at.
    digest: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ToolDecisionWord)]
enum Decision {
    Allow,
    Deny,
}

/// Decide, once. A digest that is not the call's is refused, and so is a call that no longer waits.
#[utoipa::path(post, path = "/api/tools/approvals/{id}", tag = "tools", params(("id" = String, Path)),
    request_body = DecisionBody,
    responses((status = 200, body = ApprovalView), (status = "default", body = ErrorBody)))]
pub(super) async fn decide(
    State(app): State<App>,
    segments: Segments,
    caller: Caller,
    Once(body): Once<DecisionBody>,
) -> ApiResult<Reply<ApprovalView>> {
    let answer = match body.decision {
        Decision::Allow => Answer::Allow,
        Decision::Deny => Answer::Deny,
    };
    let decided = desk(&app)?.decide(segments.get("id")?, answer, &body.digest, &caller.name).await;
    Ok(Reply(decided.map_err(refused)?.into()))
}

fn desk(app: &App) -> ApiResult<&Desk> {
    let desk = app.tools().desk().map(|desk| &**desk);
    desk.ok_or_else(|| refused(DeskError::NotFound))
}

fn refused(error: DeskError) -> ApiError {
    let message = error.to_string();
    let (status, code) = match error {
        DeskError::Store(error) => return error.into(),
        DeskError::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        DeskError::OtherDigest => (StatusCode::CONFLICT, "other_digest"),
        DeskError::Ended(ApprovalOutcome::Allowed | ApprovalOutcome::Denied) => {
            (StatusCode::CONFLICT, "already_decided")
        }
        DeskError::Ended(_) => (StatusCode::GONE, "no_longer_waiting"),
        DeskError::TooMany | DeskError::TooManyOfSession | DeskError::TooLarge => {
            (StatusCode::TOO_MANY_REQUESTS, "too_many_approvals")
        }
    };
    ApiError::new(status, code, message)
}
