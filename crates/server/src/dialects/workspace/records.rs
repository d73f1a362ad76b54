//! Records of sandboxes that the UI keeps: which there are, where they are, which one is used. They
//! start, stop and call nothing.

use axum::extract::{Path, State};
use http::StatusCode;
use sandbank_store::SandboxRecord;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::body::Fields;
use super::error::{Detail, refused};
use super::query::Parameters;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::limits::{MAX_SANDBOX_RECORD_BYTES, MAX_SANDBOX_RECORDS};
use crate::reply::Reply;
use crate::unix_time::{now_ms, rfc3339};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Lifecycle {
    #[schema(value_type = Object)]
    sandbox: Value,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Active {
    active_sandbox_id: Option<String>,
    #[schema(value_type = Option<Object>)]
    sandbox: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Target {
    /// `local` or `sandbox`.
    mode: &'static str,
    sandbox_id: Option<String>,
    target_base_url: Option<String>,
    reason: &'static str,
}

/// All records, oldest first.
#[utoipa::path(get, path = "/api/sandbox", tag = "workspace_sandbox",
    responses((status = 200, body = Vec<Object>), (status = "default", body = Detail)))]
pub(super) async fn list(State(app): State<App>) -> ApiResult<Reply<Vec<Value>>> {
    let records = app.store().sandbox_records().list().await?;
    Ok(Reply(records.iter().map(view).collect()))
}

/// Note a sandbox. The first one is the one that is used.
#[utoipa::path(post, path = "/api/sandbox", tag = "workspace_sandbox", request_body = Object,
    responses((status = 200, body = Lifecycle), (status = "default", body = Detail)))]
pub(super) async fn create(State(app): State<App>, fields: Fields) -> ApiResult<Reply<Lifecycle>> {
    let request = json!({
        "name": fields.text_not_empty("name")?,
        "workspace_id": fields.optional_text("workspace_id")?,
        "owner": fields.optional_text("owner")?,
        "target_base_url": fields.text_not_empty("target_base_url")?,
        "labels": fields.texts("labels")?,
        "metadata": fields.object("metadata")?,
    });
    if request.to_string().len() > MAX_SANDBOX_RECORD_BYTES {
        let message = format!("The record has more than {MAX_SANDBOX_RECORD_BYTES} bytes");
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message));
    }
    let id = uuid::Uuid::new_v4().to_string();
    let records = app.store().sandbox_records();
    if !records.insert(&id, &request, now_ms(), MAX_SANDBOX_RECORDS).await? {
        let message = format!("There are {MAX_SANDBOX_RECORDS} records; stop some of them");
        return Err(refused(StatusCode::CONFLICT, "too_many_records", message));
    }
    Ok(Reply(Lifecycle { sandbox: view(&find(&app, &id).await?) }))
}

/// The one that is used.
#[utoipa::path(get, path = "/api/sandbox/active", tag = "workspace_sandbox",
    responses((status = 200, body = Active), (status = "default", body = Detail)))]
pub(super) async fn active(State(app): State<App>) -> ApiResult<Reply<Active>> {
    let active = app.store().sandbox_records().active().await?;
    let sandbox = active.as_ref().map(view);
    Ok(Reply(Active { active_sandbox_id: active.map(|record| record.id), sandbox }))
}

/// Where requests are to go: the record that is named, else the active one, else one of the
/// workspace that is named, else here.
#[utoipa::path(get, path = "/api/sandbox/target", tag = "workspace_sandbox",
    params(("sandbox_id" = Option<String>, Query), ("workspace_id" = Option<String>, Query)),
    responses((status = 200, body = Target), (status = "default", body = Detail)))]
pub(super) async fn target(
    State(app): State<App>,
    parameters: Parameters,
) -> ApiResult<Reply<Target>> {
    let named = |name| parameters.get(name).filter(|text| !text.is_empty());
    let records = app.store().sandbox_records();
    if let Some(id) = named("sandbox_id") {
        return Ok(towards(&find(&app, id).await?, "explicit_sandbox_id"));
    }
    if let Some(record) = records.active().await? {
        return Ok(towards(&record, "active_sandbox"));
    }
    if let Some(workspace) = named("workspace_id") {
        let of_workspace = |record: &&SandboxRecord| record.request["workspace_id"] == workspace;
        if let Some(record) = records.list().await?.iter().find(of_workspace) {
            return Ok(towards(record, "workspace_match"));
        }
    }
    Ok(Reply(Target {
        mode: "local",
        sandbox_id: None,
        target_base_url: None,
        reason: "no_sandbox_selected",
    }))
}

fn towards(record: &SandboxRecord, reason: &'static str) -> Reply<Target> {
    let target_base_url = record.request["target_base_url"].as_str().map(str::to_owned);
    Reply(Target { mode: "sandbox", sandbox_id: Some(record.id.clone()), target_base_url, reason })
}

/// One record.
#[utoipa::path(get, path = "/api/sandbox/{id}", tag = "workspace_sandbox",
    params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = "default", body = Detail)))]
pub(super) async fn get(State(app): State<App>, Path(id): Path<String>) -> ApiResult<Reply<Value>> {
    Ok(Reply(view(&find(&app, &id).await?)))
}

/// Use this one from now on.
#[utoipa::path(post, path = "/api/sandbox/{id}/activate", tag = "workspace_sandbox",
    params(("id" = String, Path)),
    responses((status = 200, body = Active), (status = "default", body = Detail)))]
pub(super) async fn activate(
    State(app): State<App>,
    Path(id): Path<String>,
) -> ApiResult<Reply<Active>> {
    if !app.store().sandbox_records().activate(&id).await? {
        return Err(not_found());
    }
    let sandbox = Some(view(&find(&app, &id).await?));
    Ok(Reply(Active { active_sandbox_id: Some(id), sandbox }))
}

/// Note that it runs.
#[utoipa::path(post, path = "/api/sandbox/{id}/start", tag = "workspace_sandbox",
    params(("id" = String, Path)),
    responses((status = 200, body = Lifecycle), (status = "default", body = Detail)))]
pub(super) async fn start(
    State(app): State<App>,
    Path(id): Path<String>,
) -> ApiResult<Reply<Lifecycle>> {
    match app.store().sandbox_records().start(&id, now_ms()).await? {
        true => Ok(Reply(Lifecycle { sandbox: view(&find(&app, &id).await?) })),
        false => Err(not_found()),
    }
}

/// Note that it does not run. It is then not used either.
#[utoipa::path(post, path = "/api/sandbox/{id}/stop", tag = "workspace_sandbox",
    params(("id" = String, Path)),
    responses((status = 200, body = Lifecycle), (status = "default", body = Detail)))]
pub(super) async fn stop(
    State(app): State<App>,
    Path(id): Path<String>,
) -> ApiResult<Reply<Lifecycle>> {
    match app.store().sandbox_records().stop(&id, now_ms()).await? {
        true => Ok(Reply(Lifecycle { sandbox: view(&find(&app, &id).await?) })),
        false => Err(not_found()),
    }
}

async fn find(app: &App, id: &str) -> ApiResult<SandboxRecord> {
    app.store().sandbox_records().find(id).await?.ok_or_else(not_found)
}

/// The original's own word.
fn not_found() -> ApiError {
    refused(StatusCode::NOT_FOUND, "not_found", "sandbox_not_found".to_owned())
}

fn view(record: &SandboxRecord) -> Value {
    let mut view = match &record.request {
        Value::Object(request) => request.clone(),
        _ => Map::new(),
    };
    let time = |at: Option<u64>| json!(at.map(rfc3339));
    for (name, value) in [
        ("id", json!(record.id)),
        ("status", json!(record.status.as_str())),
        ("created_at", time(Some(record.created_at_ms))),
        ("updated_at", time(Some(record.updated_at_ms))),
        ("started_at", time(record.started_at_ms)),
        ("stopped_at", time(record.stopped_at_ms)),
    ] {
        view.insert(name.to_owned(), value);
    }
    Value::Object(view)
}
