//! The `/search` routes: names in the workspace, and text in its files.
//!
//! A search runs on threads of its own and tells what it finds while it goes on. The pattern is
//! compiled there, too, before the answer begins: a hostile one takes long, and a wrong one is
//! refused. Everything it may use is bounded, and what was cut is said at the end.

mod bounds;
mod directory;
mod file;
mod filter;
mod lines;
mod matcher;
mod names;
mod output;
mod pattern;
mod queue;
mod rules;
mod sink;
mod sorted;
mod start;
mod text;
mod walk;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};
use sandbank_protocol::{Fault, FaultCode};
use tokio::sync::oneshot;

use crate::files::Workspace;
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::offload::{Findings, Offload};

/// Answers every path that begins with `/search`.
pub(crate) async fn handle(
    request: Request<Incoming>,
    workspace: &Workspace,
    offload: &Offload,
) -> Result<Response<RunnerBody>, Fault> {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or_default())?;
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/search/names") => names::handle(workspace, offload, query).await,
        (&Method::POST, "/search/text") => {
            query.finish()?;
            text::handle(workspace, offload, body).await
        }
        (method, path) => Err(http::no_route(method, path)),
    }
}

/// Prepares and runs a search elsewhere. The answer begins when it is known to make sense.
async fn answer<T>(
    offload: &Offload,
    prepare: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    run: impl FnOnce(T, Findings) + Send + 'static,
) -> Result<Response<RunnerBody>, Fault> {
    let (tell, told) = oneshot::channel();
    let body = offload.begin("search", move |findings| match prepare() {
        Ok(work) => {
            if tell.send(Ok(())).is_ok() {
                run(work, findings);
            }
        }
        Err(fault) => drop(tell.send(Err(fault))),
    })?;
    told.await.map_err(|_| Fault::new(FaultCode::Internal, "the search did not begin"))??;
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
