//! A stream to a machine's runner.

use std::io;
use std::sync::Arc;

use sandbank_engine::{EngineError, SandboxId, Stream};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::Parts;
use crate::limits::{CONNECT_DEADLINE, KERNEL_POLL};

pub(super) async fn connect(
    parts: &Arc<Parts>,
    id: &SandboxId,
) -> Result<Box<dyn Stream>, EngineError> {
    let entry = parts.table.find(id)?;
    let deadline = Instant::now() + CONNECT_DEADLINE;
    loop {
        if entry.is_dead() {
            return Err(EngineError::Dead(id.clone()));
        }
        match UnixStream::connect(parts.directory.socket(id)).await {
            Ok(stream) => return Ok(Box::new(stream)),
            // The accept queue is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() > deadline {
                    return Err(EngineError::Unavailable("the runner does not accept".into()));
                }
                tokio::time::sleep(KERNEL_POLL).await;
            }
            // Nobody holds the listening end any more: the runner is gone, or about to be.
            Err(error) => return Err(refused(parts, id, error)),
        }
    }
}

fn refused(parts: &Parts, id: &SandboxId, error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => EngineError::Dead(id.clone()),
        io::ErrorKind::NotFound if !parts.directory.exists(id) => EngineError::NotFound(id.clone()),
        // Half-made: the socket comes before the machine.
        io::ErrorKind::NotFound => EngineError::Dead(id.clone()),
        _ => EngineError::io("connect to the runner")(error),
    }
}
