//! Published ports: a listener on the host for each, and a tunnel through the channel for each
//! connection. Raw bytes both ways, so WebSocket and event streams pass; half-closes are kept.

mod connection;
mod host_port;
mod listener;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_fault_points::Point;
use sandbank_store::PortRow;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::effects::reach;
use crate::sandbox::SharedSandbox;
use crate::{OrchestratorError, Published};
use host_port::{HostPort, Unbound};

pub(crate) use host_port::HostPorts;

/// The ports of one sandbox.
#[derive(Default)]
pub(crate) struct PortTable {
    /// Held while a port is published or withdrawn, so that a port has one listener.
    gate: tokio::sync::Mutex<()>,
    listening: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    ports: BTreeMap<u16, Open>,
    closed: Option<Closed>,
}

struct Open {
    published: Published,
    stop: CancellationToken,
    /// Has the host port until it ends.
    serving: JoinHandle<()>,
}

/// Why nothing is published any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// The sandbox is ending, and its ports are to be forgotten.
    Ending,
    /// The daemon goes; the next one listens again on the same host ports.
    Leaving,
}

impl PortTable {
    pub(crate) fn published(&self) -> Vec<Published> {
        self.listening().ports.values().map(|open| open.published).collect()
    }

    /// Stops listening and cuts every connection, for good.
    pub(crate) fn close(&self) {
        self.cut(Closed::Ending);
    }

    /// The same until the next daemon comes.
    pub(crate) fn leave(&self) {
        self.cut(Closed::Leaving);
    }

    fn cut(&self, closed: Closed) {
        let mut listening = self.listening();
        listening.closed = Some(closed);
        std::mem::take(&mut listening.ports).into_values().for_each(|open| open.stop.cancel());
    }

    fn listening(&self) -> MutexGuard<'_, Listening> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for `port`, on the host port it already has if it is published.
pub(crate) async fn publish(
    context: &Arc<Context>,
    sandbox: &SharedSandbox,
    port: u16,
) -> Result<Published, OrchestratorError> {
    let (context, sandbox) = (context.clone(), sandbox.clone());
    whole(async move {
        let _gate = sandbox.ports.gate.lock().await;
        let existing = sandbox.ports.listening().ports.get(&port).map(|open| open.published);
        match existing {
            Some(published) => Ok(published),
            None => listen(&context, &sandbox, port, None).await,
        }
    })
    .await
}

/// In a task of its own: a caller that stops waiting must not part what is written down from what
/// is listened on.
async fn whole<T: Send + 'static>(
    change: impl Future<Output = Result<T, OrchestratorError>> + Send + 'static,
) -> Result<T, OrchestratorError> {
    match tokio::spawn(change).await {
        Ok(changed) => changed,
        Err(error) => Err(OrchestratorError::Internal(format!("changing a port failed: {error}"))),
    }
}

/// Listens again on the host port that the sandbox had before the daemon was restarted. When it
/// is taken, another one is used, and an event says so.
pub(crate) async fn republish(context: &Arc<Context>, sandbox: &SharedSandbox, row: PortRow) {
    let _gate = sandbox.ports.gate.lock().await;
    let PortRow { port, host_port } = row;
    let Err(error) = listen(context, sandbox, port, Some(host_port)).await else { return };
    let moved = listen(context, sandbox, port, None).await;
    let detail = json!({
        "port": port,
        "from": host_port,
        "to": moved.as_ref().ok().map(|published| published.host_port),
        "error": error.to_string(),
    });
    tracing::error!(sandbox = %sandbox.id(), port, host_port, %error, "a published port has moved");
    context.events.emit("port.moved", Some(sandbox.id()), detail);
}

async fn listen(
    context: &Arc<Context>,
    sandbox: &SharedSandbox,
    port: u16,
    host_port: Option<u16>,
) -> Result<Published, OrchestratorError> {
    let address = context.settings.publish_address;
    let (host, host_port) = bind(context, port, host_port).await?;
    reach(Point::PortBound)?;
    let published = Published { port, host_port, address };
    context.store.ports().put(sandbox.id(), PortRow { port, host_port }).await?;
    reach(Point::PortStored)?;
    let stop = CancellationToken::new();
    let closed = {
        let mut listening = sandbox.ports.listening();
        if listening.closed.is_none() {
            let serving = listener::serve(sandbox.clone(), host, port, stop.clone());
            let serving = tokio::spawn(serving);
            listening.ports.insert(port, Open { published, stop, serving });
        }
        listening.closed
    };
    if let Some(closed) = closed {
        return Err(too_late(context, sandbox, port, closed).await);
    }
    let detail = json!({ "port": port, "host_port": host_port, "address": address });
    context.events.emit("port.published", Some(sandbox.id()), detail);
    Ok(published)
}

/// On `host_port`, or on any.
async fn bind(
    context: &Context,
    port: u16,
    host_port: Option<u16>,
) -> Result<(HostPort, u16), OrchestratorError> {
    let address = context.settings.listen_address();
    let bound = match host_port {
        Some(host_port) => context.host_ports.exactly(address, host_port).await,
        None => context.host_ports.any(address).await,
    };
    let failed = |reason: String| OrchestratorError::PublishFailed { port, reason };
    let host = bound.map_err(|unbound| match unbound {
        Unbound::Exhausted(range) => {
            OrchestratorError::NoHostPort { port, range: host_port::shown(&range) }
        }
        other => failed(other.to_string()),
    })?;
    let number = host.listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
    Ok((host, number))
}

/// The sandbox was closed while its port was written down. Its end may have forgotten its ports
/// before this one came, and nobody would do it again.
async fn too_late(
    context: &Context,
    sandbox: &SharedSandbox,
    port: u16,
    closed: Closed,
) -> OrchestratorError {
    if closed == Closed::Leaving {
        return OrchestratorError::ShuttingDown;
    }
    if let Err(error) = context.store.ports().remove(sandbox.id(), port).await {
        tracing::warn!(sandbox = %sandbox.id(), port, %error, "a port was not forgotten");
    }
    // Ports are closed a moment before the cause is shown.
    let mut view = sandbox.view.clone();
    let seen = view.wait_for(|view| view.state.cause().is_some()).await;
    let cause = seen.ok().and_then(|view| view.state.cause().cloned());
    cause.map_or(OrchestratorError::ShuttingDown, |cause| sandbox.gone(cause))
}

/// Idempotent. The host port is free when this is over.
pub(crate) async fn unpublish(
    context: &Arc<Context>,
    sandbox: &SharedSandbox,
    port: u16,
) -> Result<(), OrchestratorError> {
    let (context, sandbox) = (context.clone(), sandbox.clone());
    whole(async move {
        let _gate = sandbox.ports.gate.lock().await;
        context.store.ports().remove(sandbox.id(), port).await?;
        let open = sandbox.ports.listening().ports.remove(&port);
        if let Some(open) = open {
            open.stop.cancel();
            // Whoever is told that the port is closed finds it closed.
            let _ = open.serving.await;
            context.events.emit("port.unpublished", Some(sandbox.id()), json!({ "port": port }));
        }
        Ok(())
    })
    .await
}
