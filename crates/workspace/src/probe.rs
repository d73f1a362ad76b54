//! A place used once, in all the ways that everything else uses it.

use sandbank_channel::{ByteRange, ChannelError, RunnerClient, full_body};
use sandbank_protocol::CommandSpec;
use serde_json::json;

use crate::request_id::random;
use crate::{Place, PlaceCalls, PlaceError};

const SAID: &str = "sandbank was here";
const CODE: i32 = 7;

/// Writes, reads and removes a file, and runs a command. Says where the workspace is.
pub async fn probe<P: Place + ?Sized>(place: &P) -> Result<String, PlaceError> {
    let root = place.root().await?;
    let id = format!("sandbank-probe-{:016x}", random() as u64);
    try_files(place, &format!(".{id}")).await?;
    try_command(place, &id).await?;
    Ok(root)
}

async fn try_files<P: Place + ?Sized>(place: &P, name: &str) -> Result<(), PlaceError> {
    let write = |client: RunnerClient| async move {
        client.write_file(name, Some(0o600), full_body(SAID)).await
    };
    place.run(write).await?;
    let read = |client: RunnerClient| async move {
        let mut file = client.read_file(name, ByteRange::default()).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = file.chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    let read = place.run(read).await;
    place.client().await?.remove(name, false).await?;
    if read? == SAID.as_bytes() {
        return Ok(());
    }
    Err(ChannelError::Violation("a file did not come back as it was written".into()).into())
}

async fn try_command<P: Place + ?Sized>(place: &P, id: &str) -> Result<(), PlaceError> {
    let spec = json!({ "id": id, "argv": ["sh", "-c", format!("exit {CODE}")] });
    let spec: CommandSpec = serde_json::from_value(spec).expect("it is a spec");
    let spec = &spec;
    place.run(|client: RunnerClient| async move { client.start(spec).await }).await?;
    let wait = |client: RunnerClient| async move { client.wait(&spec.id).await };
    let status = place.run(wait).await?;
    match status.ending().and_then(|ending| ending.exit_code()) {
        Some(CODE) => Ok(()),
        other => {
            let message = format!("a command ended with {other:?} instead of {CODE}");
            Err(ChannelError::Violation(message).into())
        }
    }
}
