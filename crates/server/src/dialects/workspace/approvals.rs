//! What an agent asks leave for, and what a person decides. Kept in the store, so that a question
//! outlives the daemon. It is of the user it was asked with, and what nobody decides in time is
//! denied.

use axum::extract::{Path, State};
use http::StatusCode;
use sandbank_store::{ApprovalRow, Decided, Decision, Question};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::body::Fields;
use super::error::{Detail, refused};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::limits::{MAX_APPROVAL_BYTES, MAX_DECIDED_APPROVALS, MAX_PENDING_APPROVALS, RETRY_SOON};
use crate::reply::Reply;
use crate::unix_time::{now_ms, rfc3339};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Asked {
    request_id: String,
    status: &'static str,
}

/// Ask for leave.
#[utoipa::path(post, path = "/api/approval/request", tag = "workspace_approval", request_body = Object,
    responses((status = 200, body = Asked), (status = "default", body = Detail)))]
pub(super) async fn request(
    State(app): State<App>,
    caller: Caller,
    fields: Fields,
) -> ApiResult<Reply<Asked>> {
    let request = json!({
        "tool_name": fields.text("tool_name")?,
        "description": fields.text("description")?,
        "command": fields.optional_text("command")?,
        "metadata": fields.optional_object("metadata")?,
    });
    if request.to_string().len() > MAX_APPROVAL_BYTES {
        let message = format!("The request has more than {MAX_APPROVAL_BYTES} bytes");
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message));
    }
    let now_ms = now_ms();
    let approvals = app.store().approvals();
    approvals.expire(now_ms).await?;
    if approvals.pending().await?.len() >= MAX_PENDING_APPROVALS {
        let message = format!("{MAX_PENDING_APPROVALS} requests wait for a decision");
        let status = StatusCode::TOO_MANY_REQUESTS;
        return Err(ApiError::overloaded(status, "too_many_approvals", message, RETRY_SOON)
            .with_hint("decide or delete some: GET /api/approval/pending lists them"));
    }
    let request_id = uuid::Uuid::new_v4().to_string();
    let wait_ms = u64::try_from(app.settings().workspace.approval_deadline.as_millis());
    let question = Question {
        id: &request_id,
        request: &request,
        asked_by: &caller.name,
        now_ms,
        expires_at_ms: now_ms.saturating_add(wait_ms.unwrap_or(u64::MAX)),
    };
    approvals.insert(question, MAX_DECIDED_APPROVALS).await?;
    Ok(Reply(Asked { request_id, status: "pending" }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pending {
    #[schema(value_type = Vec<Object>)]
    pending: Vec<Value>,
    /// The same: what the UI reads.
    #[schema(value_type = Vec<Object>)]
    requests: Vec<Value>,
    count: usize,
}

/// What waits for a decision, oldest first.
#[utoipa::path(get, path = "/api/approval/pending", tag = "workspace_approval",
    responses((status = 200, body = Pending), (status = "default", body = Detail)))]
pub(super) async fn pending(State(app): State<App>, caller: Caller) -> ApiResult<Reply<Pending>> {
    app.store().approvals().expire(now_ms()).await?;
    let mut rows = app.store().approvals().pending().await?;
    rows.retain(|row| is_of(row, &caller));
    let pending: Vec<Value> = rows.into_iter().map(view).collect();
    Ok(Reply(Pending { requests: pending.clone(), count: pending.len(), pending }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecisionView {
    success: bool,
    request_id: String,
    decision: &'static str,
}

/// Decide, once.
#[utoipa::path(post, path = "/api/approval/decision", tag = "workspace_approval", request_body = Object,
    responses((status = 200, body = DecisionView), (status = "default", body = Detail)))]
pub(super) async fn decide(
    State(app): State<App>,
    caller: Caller,
    fields: Fields,
) -> ApiResult<Reply<DecisionView>> {
    let id = fields.text("request_id")?;
    let decision: Decision = fields.text("decision")?.parse().map_err(|_| {
        let message = "Decision must be 'approve' or 'deny'".to_owned();
        refused(StatusCode::BAD_REQUEST, "bad_decision", message)
    })?;
    let reason = fields.optional_text("reason")?;
    let reason = reason.map(|reason| reason.chars().take(MAX_APPROVAL_BYTES).collect());
    find(&app, &caller, id).await?;
    let decided = Decided { decision, reason, by: caller.name.to_string(), at_ms: now_ms() };
    if !app.store().approvals().decide(id, &decided).await? {
        let before = find(&app, &caller, id).await?;
        let status = before.decided.map_or("pending", |before| before.decision.as_str());
        let message = format!("Request already decided: {status}");
        return Err(refused(StatusCode::CONFLICT, "conflict", message));
    }
    let decision = decision.as_str();
    Ok(Reply(DecisionView { success: true, request_id: id.to_owned(), decision }))
}

/// What became of a request.
#[utoipa::path(get, path = "/api/approval/status/{request_id}", tag = "workspace_approval",
    params(("request_id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = Detail)))]
pub(super) async fn status(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Reply<Value>> {
    find(&app, &caller, &id).await.map(|row| Reply(view(row)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deleted {
    success: bool,
    request_id: String,
}

/// Withdraw a request.
#[utoipa::path(delete, path = "/api/approval/{request_id}", tag = "workspace_approval",
    params(("request_id" = String, Path)),
    responses((status = 200, body = Deleted), (status = "default", body = Detail)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Reply<Deleted>> {
    find(&app, &caller, &id).await?;
    match app.store().approvals().delete(&id).await? {
        true => Ok(Reply(Deleted { success: true, request_id: id })),
        false => Err(not_found(&id)),
    }
}

/// As it is now, for whoever asked and for those who may do everything; for others there is none.
async fn find(app: &App, caller: &Caller, id: &str) -> ApiResult<ApprovalRow> {
    app.store().approvals().expire(now_ms()).await?;
    let row = app.store().approvals().find(id).await?;
    row.filter(|row| is_of(row, caller)).ok_or_else(|| not_found(id))
}

fn is_of(row: &ApprovalRow, caller: &Caller) -> bool {
    caller.is_admin || row.asked_by.as_deref().is_none_or(|by| by == &*caller.name)
}

fn view(row: ApprovalRow) -> Value {
    let mut view = match row.request {
        Value::Object(request) => request,
        _ => Map::new(),
    };
    let status = row.decided.as_ref().map_or("pending", |decided| decided.decision.as_str());
    view.insert("id".to_owned(), json!(row.id));
    view.insert("status".to_owned(), json!(status));
    view.insert("created_at".to_owned(), json!(rfc3339(row.created_at_ms)));
    view.insert("expires_at".to_owned(), json!(rfc3339(row.expires_at_ms)));
    if let Some(decided) = row.decided {
        view.insert("reason".to_owned(), json!(decided.reason));
        view.insert("decided_at".to_owned(), json!(rfc3339(decided.at_ms)));
    }
    Value::Object(view)
}

fn not_found(id: &str) -> ApiError {
    let shown: String = id.chars().take(100).collect();
    refused(StatusCode::NOT_FOUND, "not_found", format!("Approval request not found: {shown}"))
}
