//! `/api/chat`: a conversation with the configured model, as the AI SDK's clients have it.
//!
//! The model is given the tools where their gates let the caller through; every answer says so in a
//! header. A client that hangs up ends the model's answer and the command that runs.

mod stream;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use sandbank_chat::{
    BadChat, ChatRequest, ChatSession, Job, MAX_CHAT_BYTES, Model, explicit, run, system_prompt,
};
use sandbank_tools::{Surface, Toolbox};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use utoipa_axum::routes;

use super::tools::{self, OWNED, enabled};
use crate::app::App;
use crate::auth::{Access, Caller, Scope};
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::read_whole;
use crate::limits::CHAT_PARTS;
use crate::request::Carried;
use crate::routes::Routes;

const USE: Access = Access::Chat(Scope::Sandbox);

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.add(USE, routes!(chat)).add(USE, routes!(resume))
}

/// Whether errors of this path look as those of the tools do.
pub(crate) fn is_ours(path: &str) -> bool {
    path == "/api/chat" || path.starts_with("/api/chat/")
}

/// Say something, and get the answer as a stream of the AI SDK's parts. The body is what its
/// transport sends: `messages`, and `chatId` (or `id`) or `temporarySessionId`, which name the
/// sandbox that the tools use. A message that orders a command, such as `/bash ls`, `bash: ls` or
/// ``Run: `ls` ``, has it run before the model is asked, or, in the first two forms, instead.
#[utoipa::path(post, path = "/api/chat", tag = "chat", operation_id = "say",
    request_body = Object,
    responses((status = 200, body = Object, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(super) async fn chat(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return ApiError::internal().into_response();
    };
    let facts = tools::facts(&parts, &caller);
    let has_tools = match app.chat_model() {
        Some(model) => model.settings().tools && app.tools().admit(&facts).await.is_ok(),
        None => false,
    };
    let request = Request::from_parts(parts, body);
    let begun = begin(&app, &caller, has_tools, request).await;
    match begun {
        Ok((response, has_tools)) => (enabled(has_tools), response).into_response(),
        Err(error) => (enabled(has_tools), error).into_response(),
    }
}

/// There is never an answer to take up again: it ends with its connection.
#[utoipa::path(get, path = "/api/chat/{id}/stream", tag = "chat", operation_id = "resume",
    params(("id" = String, Path)),
    responses((status = 204), (status = "default", body = ErrorBody)))]
pub(super) async fn resume() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// The answer, and whether the model has tools after all.
async fn begin(
    app: &App,
    caller: &Caller,
    has_tools: bool,
    request: Request,
) -> ApiResult<(Response, bool)> {
    let model = app.chat_model().ok_or_else(switched_off)?.clone();
    let body = read_whole(request, app, MAX_CHAT_BYTES).await?;
    let request = ChatRequest::read(&body).map_err(bad_chat)?;
    let session = request.session().map_err(bad_chat)?.filter(|_| has_tools);
    let toolbox = session.map(|session| toolbox(app, caller, &session)).transpose()?;
    let has_tools = toolbox.is_some();
    let permit = app.streams().open()?;
    let job = job(&model, request, toolbox);
    let (out, parts) = mpsc::channel(CHAT_PARTS);
    tokio::spawn(Carried::now().over(converse(app.clone(), model, job, out)));
    Ok((stream::answer(parts, permit), has_tools))
}

fn toolbox(app: &App, caller: &Caller, session: &ChatSession) -> ApiResult<Arc<dyn Toolbox>> {
    // Who has no token shares its chats with all who have none.
    let owner = if caller.has_token { &*caller.name } else { "" };
    let key = format!("{OWNED}{}", session.key(owner));
    let refused = |wrong| tools::refusal(&wrong);
    app.tools().prewarm(&key).map_err(refused)?;
    app.tools().toolbox(&key, Surface::Chat, Some(&caller.host)).map_err(refused)
}

fn job(model: &Model, request: ChatRequest, toolbox: Option<Arc<dyn Toolbox>>) -> Job {
    let tools = toolbox.as_ref().map(|toolbox| toolbox.tools()).unwrap_or_default();
    let system = system_prompt(model.settings().system_prompt.as_deref(), &tools);
    let explicit = request.order().and_then(|message| explicit(&message));
    Job { conversation: request.conversation(system), toolbox, explicit }
}

/// To its end, or to the daemon's.
async fn converse(app: App, model: Arc<Model>, job: Job, out: mpsc::Sender<sandbank_chat::Part>) {
    let cancel = CancellationToken::new();
    let work = run(&model, job, out, cancel.clone());
    app.shutdown().cancelling(&cancel, work).await;
}

fn switched_off() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "chat_off", "there is no model to chat with").with_hint(
        "name one in the section [app.chat] of the configuration: provider, model and api_key_env",
    )
}

fn bad_chat(wrong: BadChat) -> ApiError {
    let status = match wrong {
        BadChat::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BadChat::Malformed(_) | BadChat::BadSession => StatusCode::BAD_REQUEST,
    };
    ApiError::new(status, "bad_chat", wrong.to_string())
}
