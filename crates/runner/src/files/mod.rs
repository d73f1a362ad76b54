//! The `/files` routes: reads, atomic writes, listings, moves and removals in the workspace.
//!
//! Each verb has a file. They validate a request, turn paths into [`RelPath`]s, and leave every
//! contact with the file system to `rooted-fs`. Long copies give way to other requests after each
//! piece, because the runner has one thread.

mod archive;
mod chmod;
mod copy;
pub(crate) mod fault;
mod json_text;
mod list;
mod mkdir;
pub(crate) mod query;
mod read;
mod remove;
mod rename;
mod replace;
mod stat;
mod tar_header;
mod tree;
mod unpack;
mod upload;
mod write_at;
mod write_many;

pub(crate) use list::hex;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use sandbank_protocol::{Fault, FaultCode, RunnerConfig};
use sandbank_rooted_fs::{RelPath, Root};

use crate::http::{self, RunnerBody};
use crate::offload::Offload;
use fault::refuse_path;
use query::Query;

/// The directory that all file operations stay below.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: Arc<Root>,
    /// The runner opens it as it starts: its uptime counts from here.
    opened: Instant,
}

impl Workspace {
    pub(crate) fn open(config: &RunnerConfig) -> io::Result<Self> {
        let root = Root::open(&config.workspace, &config.workspace_aliases).map_err(|error| {
            io::Error::other(format!("the workspace {:?}: {error}", config.workspace))
        })?;
        Ok(Self { root: Arc::new(root), opened: Instant::now() })
    }

    pub(crate) fn open_for(&self) -> Duration {
        self.opened.elapsed()
    }

    /// For work on other threads.
    pub(crate) fn root(&self) -> Arc<Root> {
        self.root.clone()
    }

    pub(crate) fn path(&self, path: impl AsRef<[u8]>) -> Result<RelPath, Fault> {
        self.root.parse(path).map_err(refuse_path)
    }

    /// The required `path` parameter of a request.
    pub(crate) fn path_of(&self, query: &mut Query) -> Result<RelPath, Fault> {
        let path = query.take("path");
        self.path(path.ok_or_else(|| Fault::new(FaultCode::Invalid, "the path is missing"))?)
    }
}

impl AsFd for Workspace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// Answers every path that is `/files` or begins with `/files/`.
pub(crate) async fn handle(
    request: Request<Incoming>,
    workspace: &Rc<Workspace>,
    offload: &Offload,
) -> Result<Response<RunnerBody>, Fault> {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query().unwrap_or_default())?;
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/files") => read::handle(workspace, query),
        (&Method::PUT, "/files") if query.has("offset") => {
            write_at::handle(workspace, query, body).await
        }
        (&Method::PUT, "/files") => replace::handle(workspace, query, body).await,
        (&Method::DELETE, "/files") => remove::handle(workspace, query).await,
        (&Method::POST, "/files/write-many") => write_many::handle(workspace, query, body).await,
        (&Method::GET, "/files/stat") => stat::handle(workspace, query),
        (&Method::GET, "/files/list") => list::handle(workspace, query).await,
        (&Method::POST, "/files/mkdir") => mkdir::handle(workspace, query, body).await,
        (&Method::POST, "/files/move") => rename::handle(workspace, query, body).await,
        (&Method::GET, "/files/tree") => tree::handle(workspace, offload, query),
        (&Method::GET, "/files/archive") => archive::handle(workspace, offload, query),
        (&Method::PUT, "/files/archive") => unpack::handle(workspace, offload, query, body).await,
        (&Method::POST, "/files/copy") => copy::handle(workspace, offload, query, body).await,
        (&Method::POST, "/files/chmod") => chmod::handle(workspace, offload, query, body).await,
        (method, path) => Err(http::no_route(method, path)),
    }
}
