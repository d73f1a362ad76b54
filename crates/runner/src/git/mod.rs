//! The `/git` routes: the sandbox's own `git`, asked about repositories in the workspace.
//!
//! Git runs as the workload and where it may go. Whoever only looks runs nothing that the
//! repository chose: see [`environment`]. Each request has one deadline, and nothing that it
//! started outlives it.

mod branches;
mod change;
mod diff;
mod environment;
mod failure;
mod log;
mod porcelain;
mod repository;
mod revision;
mod run;
mod show;
mod status;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use sandbank_protocol::{Fault, FaultCode, GitCheckout, GitCommitRequest, GitPaths};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::commands::Commands;
use crate::files::Workspace;
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{GIT_TIMEOUT, MAX_GIT_AT_ONCE, MAX_GIT_WAITING};
use run::Session;

/// Whose turn it is.
pub(crate) struct Git {
    places: Arc<Semaphore>,
    waiting: Cell<usize>,
}

impl Default for Git {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_GIT_AT_ONCE)), waiting: Cell::new(0) }
    }
}

/// Counts one that waits for as long as it lives.
struct Waiting<'a>(&'a Cell<usize>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Git {
    async fn place(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Fault> {
        if self.waiting.get() == MAX_GIT_WAITING {
            let message = format!("{MAX_GIT_WAITING} requests about git wait already");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        self.waiting.set(self.waiting.get() + 1);
        let _waiting = Waiting(&self.waiting);
        match timeout_at(deadline, self.places.clone().acquire_owned()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => {
                let message = format!("no place became free within {GIT_TIMEOUT:?}");
                Err(Fault::new(FaultCode::TimedOut, message))
            }
        }
    }
}

/// Answers every path that begins with `/git/`.
pub(crate) async fn handle(
    request: Request<Incoming>,
    git: &Git,
    commands: &Rc<Commands>,
    workspace: &Rc<Workspace>,
) -> Result<Response<RunnerBody>, Fault> {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or_default())?;
    let deadline = Instant::now() + GIT_TIMEOUT;
    let wanted = Wanted::read(&head.method, head.uri.path(), body, deadline).await?;
    let place = git.place(deadline).await?;
    let session = Session::new(commands, workspace, deadline, Rc::new(place))?;
    match wanted {
        Wanted::Status => status::handle(&session, query).await,
        Wanted::Diff => diff::handle(&session, query).await,
        Wanted::Show => show::handle(&session, query).await,
        Wanted::Log => log::handle(&session, query).await,
        Wanted::Branches => branches::handle(&session, query).await,
        Wanted::Stage(request) => change::stage(&session, query, &request).await,
        Wanted::Unstage(request) => change::unstage(&session, query, &request).await,
        Wanted::Commit(request) => change::commit(&session, query, &request).await,
        Wanted::Checkout(request) => change::checkout(&session, query, &request).await,
    }
}

/// What a request asks for, read to its end before it takes a place.
enum Wanted {
    Status,
    Diff,
    Show,
    Log,
    Branches,
    Stage(GitPaths),
    Unstage(GitPaths),
    Commit(GitCommitRequest),
    Checkout(GitCheckout),
}

impl Wanted {
    async fn read(
        method: &Method,
        path: &str,
        body: Incoming,
        deadline: Instant,
    ) -> Result<Self, Fault> {
        Ok(match (method, path) {
            (&Method::GET, "/git/status") => Self::Status,
            (&Method::GET, "/git/diff") => Self::Diff,
            (&Method::GET, "/git/show") => Self::Show,
            (&Method::GET, "/git/log") => Self::Log,
            (&Method::GET, "/git/branches") => Self::Branches,
            (&Method::POST, "/git/stage") => Self::Stage(by(deadline, body).await?),
            (&Method::POST, "/git/unstage") => Self::Unstage(by(deadline, body).await?),
            (&Method::POST, "/git/commit") => Self::Commit(by(deadline, body).await?),
            (&Method::POST, "/git/checkout") => Self::Checkout(by(deadline, body).await?),
            (method, path) => return Err(http::no_route(method, path)),
        })
    }
}

async fn by<T: DeserializeOwned>(deadline: Instant, body: Incoming) -> Result<T, Fault> {
    timeout_at(deadline, http::read_json(body)).await.unwrap_or_else(|_| {
        let message = format!("the request did not arrive within {GIT_TIMEOUT:?}");
        Err(Fault::new(FaultCode::TimedOut, message))
    })
}
