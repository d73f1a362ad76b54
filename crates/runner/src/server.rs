//! The channel: HTTP/2 with prior knowledge on every connection that is accepted.
//!
//! Several daemons may be connected at once, as when one replaces another. A connection that
//! breaks takes its streams with it, never a command.

use std::convert::Infallible;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use sandbank_protocol::{Fault, Hello};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;

use crate::commands::{self, Commands};
use crate::files::query::Query;
use crate::files::{self, Workspace};
use crate::git::{self, Git};
use crate::http::{self, Counters, RunnerBody};
use crate::limits::{
    ACCEPT_PAUSE, CONNECTION_WINDOW_BYTES, MAX_FRAME_BYTES, MAX_SEND_BYTES, MAX_STREAMS,
    STREAM_WINDOW_BYTES,
};
use crate::log::{Asker, Log};
use crate::offload::Offload;
use crate::watch::{self, Watches};
use crate::{search, stats, tunnel};

/// What requests work on.
pub(crate) struct Runner {
    pub(crate) hello: Hello,
    pub(crate) commands: Rc<Commands>,
    pub(crate) workspace: Rc<Workspace>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) offload: Offload,
    pub(crate) git: Git,
    pub(crate) watches: Rc<Watches>,
    pub(crate) log: Rc<Log>,
}

/// Accepts forever.
pub(crate) async fn serve(runner: Rc<Runner>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(connection(runner.clone(), stream))),
            // Out of descriptors, or a caller that left: neither is a reason to stop.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection to its end.
pub(crate) async fn connection(runner: Rc<Runner>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(move |request| answer(runner.clone(), request));
    // How a connection ends is of no interest here: its other end knows better.
    let _ = http2::Builder::new(LocalExecutor)
        .max_concurrent_streams(MAX_STREAMS)
        // The daemon may drop as many requests as it likes, over a connection of many days.
        .max_pending_accept_reset_streams(MAX_STREAMS as usize)
        .max_local_error_reset_streams(None)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        .max_send_buf_size(MAX_SEND_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    runner: Rc<Runner>,
    request: Request<Incoming>,
) -> Result<Response<RunnerBody>, Infallible> {
    let asked = runner
        .log
        .wants_failures()
        .then(|| (Asker::of(request.headers()), request.method().clone(), request.uri().clone()));
    Ok(route(&runner, request).await.unwrap_or_else(|fault| {
        if let Some((asker, method, uri)) = &asked {
            runner.log.failed(asker, method, uri, &fault);
        }
        http::fault(&fault)
    }))
}

async fn route(runner: &Runner, request: Request<Incoming>) -> Result<Response<RunnerBody>, Fault> {
    if request.method() == Method::CONNECT {
        return tunnel::handle(request, &runner.counters).await;
    }
    let first = request.uri().path().split('/').nth(1).unwrap_or_default();
    match first {
        "commands" => commands::routes::handle(request, &runner.commands, &runner.counters).await,
        "search" => search::handle(request, &runner.workspace, &runner.offload).await,
        "files" if is_watch(&request) => {
            let query = Query::parse(request.uri().query().unwrap_or_default())?;
            watch::handle(&runner.watches, &runner.workspace, &runner.counters, query).await
        }
        "files" => files::handle(request, &runner.workspace, &runner.offload).await,
        "git" => git::handle(request, &runner.git, &runner.commands, &runner.workspace).await,
        "environment" if request.method() == Method::PUT => {
            let variables = http::read_json(request.into_body()).await?;
            runner.commands.set_environment(variables).map(|()| http::no_content())
        }
        "hello" if request.method() == Method::GET => Ok(http::json(&runner.hello)),
        "stats" if request.method() == Method::GET => {
            let Runner { commands, workspace, counters, .. } = runner;
            Ok(http::json(&stats::collect(commands, workspace, counters)))
        }
        _ => Err(http::no_route(request.method(), request.uri().path())),
    }
}

fn is_watch(request: &Request<Incoming>) -> bool {
    request.method() == Method::GET && request.uri().path() == "/files/watch"
}

/// Everything stays on the one thread.
#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output: 'static> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
