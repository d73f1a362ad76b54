//! From a container's name to a clean stream to its runner.

use std::io;

use sandbank_engine::{EngineError, SandboxId};
use tokio::time::timeout;

use super::{Complaints, Cut, Cuttable, Frames};
use crate::connection::{Client, Refusal, Wire};
use crate::limits::CONNECT_DEADLINE;
use crate::naming;

pub(crate) type Attached = Cuttable<Frames<Wire>>;

/// Ends a stream of that kind.
pub(crate) type LinkCut = Cut<Frames<Wire>>;

/// A stream on which the runner has answered.
pub(crate) type Opened = Box<dyn sandbank_engine::Stream>;

/// A stream to a container that need not run yet.
pub(crate) async fn attach(
    client: &Client,
    id: &SandboxId,
    complaints: Complaints,
) -> Result<(Attached, LinkCut), EngineError> {
    let name = naming::container(id);
    let path = format!("/containers/{name}/attach?stream=1&stdin=1&stdout=1&stderr=1");
    match client.attach(&path).await? {
        Ok(attached) => Ok(Cuttable::new(Frames::new(attached.wire, attached.read, complaints))),
        Err(refusal) => Err(refused(id, &refusal)),
    }
}

fn refused(id: &SandboxId, refusal: &Refusal) -> EngineError {
    match refusal.status {
        404 => EngineError::NotFound(id.clone()),
        // It is paused, restarting or already gone.
        409 => EngineError::Unavailable(format!("machine {id}: {}", refusal.message)),
        _ => EngineError::Internal(format!("machine {id}: {}", refusal.message)),
    }
}

/// Waits for the runner, which ends whatever connection it had before.
pub(crate) async fn open(attached: Attached) -> io::Result<Opened> {
    Ok(Box::new(sandbank_channel::pipe::open(attached).await?))
}

/// Attaches and opens, in bounded time. The cut is handed over as soon as there is something to cut:
/// of a link that is never opened, too, something may be under way.
pub(crate) async fn connect(
    client: &Client,
    id: &SandboxId,
    keep: impl FnOnce(LinkCut),
) -> Result<Opened, EngineError> {
    let complaints = Complaints::of(id);
    let connecting = async {
        let (attached, cut) = attach(client, id, complaints.clone()).await?;
        keep(cut);
        open(attached).await.map_err(|error| lost(id, &error, &complaints))
    };
    match timeout(CONNECT_DEADLINE, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(EngineError::Unavailable(format!("the runner of {id} does not answer"))),
    }
}

/// The stream ended before the runner's answer.
fn lost(id: &SandboxId, error: &io::Error, complaints: &Complaints) -> EngineError {
    let said = complaints.last().unwrap_or_else(|| error.to_string());
    EngineError::Unavailable(format!("the runner of {id} was not reached: {said}"))
}
