//! `GET /files/watch`: what happens to files below a directory, as it happens.
//!
//! Everything is on the runner's one thread: the kernel tells what changed, and nothing is looked
//! at but new directories. A tree is watched on for a while after its last reader has left, so
//! that who lost the connection goes on without a gap.

mod changes;
mod exclude;
mod hub;
mod inotify;
mod reader;
mod ring;
mod shared;
mod tree;
mod watched;

pub(crate) use hub::Watches;

use std::rc::Rc;

use hyper::Response;
use sandbank_protocol::Fault;

use crate::files::Workspace;
use crate::files::fault::refuse;
use crate::files::query::Query;
use crate::http::{Counters, Open, RunnerBody};
use exclude::Excluded;
use watched::Wanted;

pub(crate) async fn handle(
    watches: &Rc<Watches>,
    workspace: &Workspace,
    counters: &Rc<Counters>,
    mut query: Query,
) -> Result<Response<RunnerBody>, Fault> {
    let path = workspace.path_of(&mut query)?;
    let recursive = query.flag_or("recursive", true)?;
    let excluded = Excluded::parse(query.take("exclude").as_deref())?;
    let after = query.number("after")?;
    query.finish()?;
    // What is no directory is refused as such.
    drop(workspace.root().open_directory(&path).map_err(refuse)?);
    let wanted = Wanted { path, recursive, excluded };
    let reader = watches.read(wanted, workspace.root()).await?;
    Ok(Response::new(reader::stream(reader, after, Open::reader(counters))))
}
