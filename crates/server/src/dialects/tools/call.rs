//! A call of one tool: its input is the body, its result the answer.

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use sandbank_orchestrator::OrchestratorError;
use sandbank_tools::ToolError;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::admission::Asking;
use super::stream::{self, Form, Telling};
use super::{enabled, error};
use crate::app::App;
use crate::dialects::told::accepted;
use crate::error::{ApiError, ApiResult, ErrorBody};
use crate::extract::{Once, Query, Segments};
use crate::reply::Reply;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CallQuery {
    /// `ndjson` or `sse`: what happens is told as it happens. An `Accept` of
    /// `application/x-ndjson` or `text/event-stream` says the same.
    stream: Option<String>,
}

/// Call a tool. The body is its input and the answer its result. With `stream` there are records
/// with a `type` each: `preparing` with a `message` while a new sandbox is filled, `progress` with
/// the whole `output` as far as it is known, then `done`, or `failed` with `error` and `code`. A client that leaves ends the call, and so does the end of the
/// server; what it started is killed.
#[utoipa::path(post, path = "/api/tools/{name}", tag = "tools", request_body = Object,
    params(("name" = String, Path), CallQuery, ("x-sandbank-session" = Option<String>, Header)),
    responses((status = 200, body = Object), (status = "default", body = ErrorBody)))]
pub(super) async fn call(State(app): State<App>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let asking = match Asking::from_request_parts(&mut parts, &app).await {
        Ok(asking) => asking,
        Err(refused) => return refused.into_response(),
    };
    if let Err(gate) = asking.is_admitted(&app).await {
        return error::closed(&gate).into_response();
    }
    let answered = admitted(&app, &asking, Request::from_parts(parts, body)).await;
    (enabled(true), answered).into_response()
}

async fn admitted(app: &App, asking: &Asking, request: Request) -> ApiResult<Response> {
    let (mut parts, body) = request.into_parts();
    let Query(query) = Query::<CallQuery>::from_request_parts(&mut parts, app).await?;
    let form = form(query.stream.as_deref(), &parts.headers)?;
    let segments = Segments::from_request_parts(&mut parts, app).await?;
    let name = segments.get("name")?.to_owned();
    let toolbox = asking.toolbox(app)?;
    let Once(input) = Once::<Value>::from_request(Request::from_parts(parts, body), app).await?;
    let cancel = CancellationToken::new();
    match form {
        None => {
            let work = toolbox.run(&name, input, cancel.clone());
            let result = app.shutdown().cancelling(&cancel, work).await;
            Ok(Reply(result.map_err(|wrong| refusal(&wrong))?).into_response())
        }
        Some(form) => {
            let permit = app.streams().open()?;
            let updates = toolbox.call(&name, input, cancel.clone()).await;
            let updates = updates.map_err(|wrong| error::of(&wrong))?;
            let shutdown = app.shutdown().clone();
            Ok(stream::answer(Telling { form, updates, cancel, shutdown }, permit))
        }
    }
}

/// Nobody but the end of the server cancels a call whose caller still waits.
fn refusal(error: &ToolError) -> ApiError {
    match error {
        ToolError::Cancelled => OrchestratorError::ShuttingDown.into(),
        other => error::of(other),
    }
}

fn form(asked: Option<&str>, headers: &HeaderMap) -> ApiResult<Option<Form>> {
    match asked {
        Some("ndjson") => return Ok(Some(Form::Ndjson)),
        Some("sse") => return Ok(Some(Form::Sse)),
        Some(_) => {
            return Err(ApiError::bad_request("bad_field", "stream must be ndjson or sse"));
        }
        None => {}
    }
    Ok(accepted(headers).find_map(|kind| match kind.as_str() {
        "application/x-ndjson" => Some(Form::Ndjson),
        "text/event-stream" => Some(Form::Sse),
        _ => None,
    }))
}
