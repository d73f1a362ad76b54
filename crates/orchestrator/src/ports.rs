//! Published ports: a listener on the host for each, and a tunnel through the channel for each
//! connection. Raw bytes both ways, so WebSocket and event streams pass; half-closes are kept.

mod connection;
mod listener;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbank_store::PortRow;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::sandbox::SharedSandbox;
use crate::{OrchestratorError, Published};

/// The ports of one sandbox.
#[derive(Default)]
pub(crate) struct PortTable {
    /// Held while a port is published or withdrawn, so that a port has one listener.
    gate: tokio::sync::Mutex<()>,
    listening: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    ports: BTreeMap<u16, (Published, CancellationToken)>,
    /// The sandbox is ending; nothing is published any more.
    closed: bool,
}

impl PortTable {
    pub(crate) fn published(&self) -> Vec<Published> {
        self.listening().ports.values().map(|(published, _)| *published).collect()
    }

    /// Stops listening and cuts every connection, for good.
    pub(crate) fn close(&self) {
        let mut listening = self.listening();
        listening.closed = true;
        std::mem::take(&mut listening.ports).into_values().for_each(|(_, stop)| stop.cancel());
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
    let _gate = sandbox.ports.gate.lock().await;
    let existing = sandbox.ports.listening().ports.get(&port).map(|(published, _)| *published);
    match existing {
        Some(published) => Ok(published),
        None => listen(context, sandbox, port, 0).await,
    }
}

/// Listens again on the host port that the sandbox had before the daemon was restarted. When it
/// is taken, another one is used, and an event says so.
pub(crate) async fn republish(context: &Arc<Context>, sandbox: &SharedSandbox, row: PortRow) {
    let _gate = sandbox.ports.gate.lock().await;
    let PortRow { port, host_port } = row;
    let Err(error) = listen(context, sandbox, port, host_port).await else { return };
    let moved = listen(context, sandbox, port, 0).await;
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
    host_port: u16,
) -> Result<Published, OrchestratorError> {
    let address = context.settings.publish_address;
    let failed = |error: std::io::Error| OrchestratorError::PublishFailed {
        port,
        reason: format!("{address}:{host_port}: {error}"),
    };
    let listener = tokio::net::TcpListener::bind((address, host_port)).await.map_err(failed)?;
    let host_port = listener.local_addr().map_err(failed)?.port();
    let published = Published { port, host_port, address };
    context.store.ports().put(sandbox.id(), PortRow { port, host_port }).await?;
    let stop = CancellationToken::new();
    {
        let mut listening = sandbox.ports.listening();
        if listening.closed {
            let cause = sandbox.cause();
            return Err(cause.map_or(OrchestratorError::ShuttingDown, |c| sandbox.gone(c)));
        }
        listening.ports.insert(port, (published, stop.clone()));
    }
    tokio::spawn(listener::serve(sandbox.clone(), listener, port, stop));
    let detail = json!({ "port": port, "host_port": host_port, "address": address });
    context.events.emit("port.published", Some(sandbox.id()), detail);
    Ok(published)
}

/// Idempotent.
pub(crate) async fn unpublish(
    context: &Context,
    sandbox: &SharedSandbox,
    port: u16,
) -> Result<(), OrchestratorError> {
    let _gate = sandbox.ports.gate.lock().await;
    context.store.ports().remove(sandbox.id(), port).await?;
    if let Some((_, stop)) = sandbox.ports.listening().ports.remove(&port) {
        stop.cancel();
        context.events.emit("port.unpublished", Some(sandbox.id()), json!({ "port": port }));
    }
    Ok(())
}
