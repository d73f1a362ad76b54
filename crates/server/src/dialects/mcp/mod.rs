//! MCP over HTTP: the tools of a sandbox for agents that speak the Model Context Protocol.
//!
//! One endpoint. A session has a sandbox of its own, or one that it names and finds again. Calls of
//! tools are answered as server-sent events, so that their progress can be told and whoever hangs up
//! ends them; everything else is plain JSON. There is nothing to listen to beside that, so GET is
//! refused, as the protocol allows.

mod call;
mod content;
mod methods;
mod rpc;
mod sessions;
mod version;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sandbank_tools::Surface;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::told::{self, EVENTS, SILENT_EVENT};
use super::tools::{self, OWNED};
use crate::app::App;
use crate::auth::{Access, Caller, Scope};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Query, read_whole};
use crate::limits::{MAX_MCP_BATCH, MAX_MCP_BYTES, MAX_MCP_SANDBOX_NAME_BYTES, MCP_EVENTS};
use crate::reply::Reply;
use crate::request::{Carried, random_id};
use crate::routes::Routes;
use crate::streams::StreamPermit;
use call::Asked;
use rpc::{INVALID_REQUEST, Message, PARSE_ERROR, RpcError, UNAVAILABLE, answer};
pub(crate) use sessions::McpSessions;
use sessions::{Full, NewSession, Session};
use version::Version;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SANDBOX: HeaderName = HeaderName::from_static("x-sandbank-session");

pub(crate) fn routes(routes: Routes) -> Routes {
    const USE: Access = Access::Token(Scope::Sandbox);
    routes.add(USE, routes!(post)).add(USE, routes!(get)).add(USE, routes!(delete))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct McpQuery {
    /// Of `initialize`: a name for the sandbox, by which later sessions of the same token find it
    /// again; the header `x-sandbank-session` wins over it. Without a name the session has a
    /// sandbox of its own, which ends with it.
    session: Option<String>,
    /// Of `initialize`: whether a sandbox with a name outlives its last session; true if not said.
    keep: Option<bool>,
}

/// One message of an MCP client, or, in version 2025-03-26, several.
#[utoipa::path(post, path = "/mcp", tag = "mcp", operation_id = "message",
    params(McpQuery,
        ("mcp-session-id" = Option<String>, Header, description = "from the answer to `initialize`"),
        ("mcp-protocol-version" = Option<String>, Header),
        ("x-sandbank-session" = Option<String>, Header)),
    request_body = Object,
    responses((status = 200, body = Object, description = "a JSON-RPC answer, or a stream of \
        server-sent events that ends with it"),
        (status = 202, description = "nothing to answer"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn post(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<McpQuery>,
    request: Request,
) -> ApiResult<Response> {
    if let Some(gate) = app.tools().switched_off() {
        return Err(tools::closed(gate));
    }
    end_sandboxes(&app, app.mcp_sessions().expired());
    let headers = request.headers().clone();
    let body = read_whole(request, &app, MAX_MCP_BYTES).await?;
    let Ok(value) = serde_json::from_slice::<Value>(&body) else {
        let error = RpcError::new(PARSE_ERROR, "the body is not JSON");
        return Ok(refused(StatusCode::BAD_REQUEST, &answer(&Value::Null, Err(error))));
    };
    if let Value::Array(messages) = value {
        let session = find(&app, &caller, &headers)?;
        return Ok(batch(&app, &session, messages).await);
    }
    match rpc::read(value) {
        Err(refusal) => Ok(refused(StatusCode::BAD_REQUEST, &refusal)),
        Ok(Message::Request(request)) if request.method == "initialize" => {
            let name = sandbox_name(&headers, &query)?;
            initialize(&app, &caller, name, query.keep.unwrap_or(true), &request)
        }
        Ok(message) => {
            let session = find(&app, &caller, &headers)?;
            single(&app, &session, message, wants_events(&headers)).await
        }
    }
}

/// There is nothing to listen to: all that is told belongs to a request.
#[utoipa::path(get, path = "/mcp", tag = "mcp", operation_id = "listen",
    responses((status = 405, body = ErrorBody), (status = "default", body = ErrorBody)))]
pub(super) async fn get() -> Response {
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "there are no messages of the server to listen to",
    );
    let mut response = error.into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, DELETE"));
    response
}

/// Ends a session, what it does, and the sandbox that is its own.
#[utoipa::path(delete, path = "/mcp", tag = "mcp", operation_id = "end",
    params(("mcp-session-id" = Option<String>, Header)),
    responses((status = 200, body = crate::reply::Done), (status = "default", body = ErrorBody)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let id = session_id(&headers)?;
    let session = app.mcp_sessions().end(id, &caller.name).ok_or_else(no_such_session)?;
    end_sandbox(&app, &session).await;
    Ok(crate::reply::Done::reply().into_response())
}

/// Those of sessions that are over, while others go on.
fn end_sandboxes(app: &App, sessions: impl IntoIterator<Item = Arc<Session>>) {
    for session in sessions {
        let app = app.clone();
        tokio::spawn(async move { end_sandbox(&app, &session).await });
    }
}

/// If it was its own.
async fn end_sandbox(app: &App, session: &Session) {
    if session.temporary
        && !app.mcp_sessions().shares(&session.sandbox)
        && let Err(error) = app.tools().reset(&session.sandbox).await
    {
        tracing::warn!(%error, "the sandbox of an MCP session was not ended; its lease will");
    }
}

fn initialize(
    app: &App,
    caller: &Caller,
    name: Option<String>,
    keep: bool,
    request: &rpc::Request,
) -> ApiResult<Response> {
    let version = match methods::wanted_version(&request.params) {
        Ok(version) => version,
        Err(error) => return Ok(Reply(answer(&request.id, Err(error))).into_response()),
    };
    let temporary = name.is_none() || !keep;
    let sandbox = match name {
        Some(name) => format!("{OWNED}mcp:{}:{name}", caller.name),
        None => format!("{OWNED}mcp:{}", random_id()),
    };
    let toolbox = app.tools().toolbox(&sandbox, Surface::Mcp, Some(&caller.host));
    let toolbox = toolbox.map_err(|wrong| tools::refusal(&wrong))?;
    let caller = caller.name.clone();
    let new = NewSession { caller, version, sandbox, temporary, toolbox };
    let (session, evicted) = app.mcp_sessions().begin(new).map_err(|Full| {
        let (code, message) = ("too_many_sessions", "all MCP sessions are busy");
        let status = StatusCode::TOO_MANY_REQUESTS;
        ApiError::overloaded(status, code, message, crate::limits::RETRY_SOON)
            .with_hint("end sessions that are no longer needed with DELETE /mcp")
    })?;
    end_sandboxes(app, evicted);
    let result = methods::initialize(version);
    let mut response = Reply(answer(&request.id, Ok(result))).into_response();
    let id = HeaderValue::from_str(&session.id).expect("ids are plain characters");
    response.headers_mut().insert(SESSION, id);
    Ok(response)
}

async fn single(
    app: &App,
    session: &Arc<Session>,
    message: Message,
    events: bool,
) -> ApiResult<Response> {
    match message {
        Message::Response => Ok(StatusCode::ACCEPTED.into_response()),
        Message::Notification { method, params } => {
            methods::heard(session, &method, &params);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Message::Request(request) if request.method == "tools/call" => {
            let id = request.id.clone();
            // Before anything is begun.
            let permit = if events { Some(app.streams().open()?) } else { None };
            match (start(app, session, request), permit) {
                (Err(error), _) => Ok(Reply(answer(&id, Err(error))).into_response()),
                (Ok(told), Some(permit)) => Ok(stream_of(told, permit)),
                (Ok(told), None) => Ok(Reply(last(told, &id).await).into_response()),
            }
        }
        Message::Request(request) => {
            let result = methods::answer_to(session, &request);
            Ok(Reply(answer(&request.id, result)).into_response())
        }
    }
}

/// Answers come in the order of the requests.
async fn batch(app: &App, session: &Arc<Session>, messages: Vec<Value>) -> Response {
    let refuse = |why: &str| {
        let error = RpcError::new(INVALID_REQUEST, why);
        refused(StatusCode::BAD_REQUEST, &answer(&Value::Null, Err(error)))
    };
    if !session.version.has_batches() {
        return refuse("this version of MCP has one message per request");
    }
    if messages.is_empty() || messages.len() > MAX_MCP_BATCH {
        return refuse("a batch has some messages, and not too many");
    }
    let mut answers = Vec::new();
    for message in messages {
        match rpc::read(message) {
            Err(refusal) => answers.push(refusal),
            Ok(Message::Response) => {}
            Ok(Message::Notification { method, params }) => {
                methods::heard(session, &method, &params);
            }
            Ok(Message::Request(request)) if request.method == "tools/call" => {
                let id = request.id.clone();
                answers.push(match start(app, session, request) {
                    Err(error) => answer(&id, Err(error)),
                    Ok(told) => last(told, &id).await,
                });
            }
            Ok(Message::Request(request)) => {
                let result = methods::answer_to(session, &request);
                answers.push(answer(&request.id, result));
            }
        }
    }
    match answers.is_empty() {
        true => StatusCode::ACCEPTED.into_response(),
        false => Reply(answers).into_response(),
    }
}

/// What it tells is read from there; whoever stops reading ends it.
fn start(
    app: &App,
    session: &Arc<Session>,
    request: rpc::Request,
) -> Result<mpsc::Receiver<Value>, RpcError> {
    let asked = Asked::read(request.id, request.params)?;
    let call = session.call(&asked.id).ok_or_else(|| {
        let why = "the id is in use, too many calls of this session run, or it has ended";
        RpcError::new(UNAVAILABLE, why)
    })?;
    let (out, told) = mpsc::channel(MCP_EVENTS);
    let work = call::run(app.clone(), call, asked, out);
    tokio::spawn(Carried::now().over(work));
    Ok(told)
}

async fn last(mut told: mpsc::Receiver<Value>, id: &Value) -> Value {
    let mut last = None;
    while let Some(message) = told.recv().await {
        last = Some(message);
    }
    last.filter(|message| message.get("id").is_some()).unwrap_or_else(|| call::cancelled(id))
}

fn stream_of(mut told: mpsc::Receiver<Value>, permit: StreamPermit) -> Response {
    let messages = stream::poll_fn(move |context| told.poll_recv(context));
    let events =
        messages.map(|message| Bytes::from(format!("event: message\ndata: {message}\n\n")));
    told::answer(EVENTS, SILENT_EVENT, events, permit)
}

fn refused(status: StatusCode, answer: &Value) -> Response {
    let mut response = Reply(answer).into_response();
    *response.status_mut() = status;
    response
}

fn wants_events(headers: &HeaderMap) -> bool {
    told::accepted(headers).any(|kind| kind == "text/event-stream")
}

fn session_id(headers: &HeaderMap) -> ApiResult<&str> {
    let id = headers.get(SESSION).and_then(|value| value.to_str().ok());
    id.ok_or_else(|| {
        ApiError::bad_request("no_session", "the header mcp-session-id is missing")
            .with_hint("begin with `initialize`; its answer has the id")
    })
}

fn find(app: &App, caller: &Caller, headers: &HeaderMap) -> ApiResult<Arc<Session>> {
    let said = headers.get(VERSION).map(|value| value.to_str().unwrap_or_default());
    if Version::said(said).is_none() {
        let message = "the header mcp-protocol-version names no version that is spoken here";
        return Err(ApiError::bad_request("bad_protocol_version", message)
            .with_hint(format!("these are: {}", Version::all())));
    }
    app.mcp_sessions().find(session_id(headers)?, &caller.name).ok_or_else(no_such_session)
}

/// The status by which clients know to begin again.
fn no_such_session() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "session_not_found",
        "there is no such session, or no longer",
    )
    .with_hint("begin again with `initialize`")
}

fn sandbox_name(headers: &HeaderMap, query: &McpQuery) -> ApiResult<Option<String>> {
    let header = headers.get(SANDBOX).map(|value| value.to_str().unwrap_or(" "));
    let Some(name) = header.or(query.session.as_deref()) else { return Ok(None) };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=MAX_MCP_SANDBOX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(Some(name.to_owned()));
    }
    let message = format!(
        "the name of a sandbox has 1 to {MAX_MCP_SANDBOX_NAME_BYTES} letters, digits, . _ and -"
    );
    Err(ApiError::bad_request("bad_session_name", message))
}
