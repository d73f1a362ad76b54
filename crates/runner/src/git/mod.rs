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

use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use sandbank_protocol::{Fault, FaultCode};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::commands::Commands;
use crate::files::Workspace;
use crate::files::query::Query;
use crate::http::{self, RunnerBody};
use crate::limits::{GIT_TIMEOUT, MAX_GIT_AT_ONCE, MAX_GIT_WAITING};
use run::Session;

/// Whose turn it is.
pub(crate) struct Git {
    places: Semaphore,
    waiting: Cell<usize>,
}

impl Default for Git {
    fn default() -> Self {
        Self { places: Semaphore::new(MAX_GIT_AT_ONCE), waiting: Cell::new(0) }
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
    async fn place(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, Fault> {
        if self.waiting.get() == MAX_GIT_WAITING {
            let message = format!("{MAX_GIT_WAITING} requests about git wait already");
            return Err(Fault::new(FaultCode::LimitReached, message));
        }
        self.waiting.set(self.waiting.get() + 1);
        let _waiting = Waiting(&self.waiting);
        match timeout_at(deadline, self.places.acquire()).await {
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
    let _place = git.place(deadline).await?;
    let session = Session::new(commands, workspace, deadline)?;
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/git/status") => status::handle(&session, query).await,
        (&Method::GET, "/git/diff") => diff::handle(&session, query).await,
        (&Method::GET, "/git/show") => show::handle(&session, query).await,
        (&Method::GET, "/git/log") => log::handle(&session, query).await,
        (&Method::GET, "/git/branches") => branches::handle(&session, query).await,
        (&Method::POST, "/git/stage") => change::stage(&session, query, body).await,
        (&Method::POST, "/git/unstage") => change::unstage(&session, query, body).await,
        (&Method::POST, "/git/commit") => change::commit(&session, query, body).await,
        (&Method::POST, "/git/checkout") => change::checkout(&session, query, body).await,
        (method, path) => Err(http::no_route(method, path)),
    }
}
