//! A machine that exists to be attacked.

use std::time::Instant;

use sandbank_channel::RunnerClient;
use sandbank_engine::{Engine, ImageName, Limits, MachineSpec, NetworkMode, SandboxId};
use tokio_util::sync::CancellationToken;

use super::{Containment, battery, judge};
use crate::OrchestratorError;

/// Enough for the battery, and little enough for it to run into.
const MEMORY_BYTES: u64 = 64 << 20;
const PIDS: u32 = 24;
const QUOTA_BYTES: u64 = 4 << 20;

/// Makes a canary, attacks it from inside, looks at it from the host, and destroys it. Whoever has
/// enough of it cancels `leaving` and waits: a future that is dropped leaves a living canary.
pub(super) async fn attack(
    engine: &dyn Engine,
    image: &ImageName,
    network: NetworkMode,
    leaving: &CancellationToken,
) -> Result<Containment, OrchestratorError> {
    let started = Instant::now();
    let spec = spec(engine, image, network);
    let tried = match engine.create(&spec).await {
        Ok(_) => {
            let examined = leaving.run_until_cancelled(examine(engine, &spec.id, started)).await;
            examined.unwrap_or(Err(OrchestratorError::ShuttingDown))
        }
        Err(error) => Err(error.into()),
    };
    if let Err(error) = engine.destroy(&spec.id).await {
        // The next start finds it without a row and removes it.
        tracing::warn!(id = %spec.id, %error, "a canary stays");
    }
    tried
}

async fn examine(
    engine: &dyn Engine,
    id: &SandboxId,
    started: Instant,
) -> Result<Containment, OrchestratorError> {
    let stream = engine.connect(id).await?;
    let (client, _) = RunnerClient::connect(stream).await?;
    let confinement = engine.confinement(id).await?;
    let inside = battery::run(&client, &confinement.battery_plan(true)).await?;
    // Again: after the attacks it must still be so.
    let confinement = engine.confinement(id).await?;
    Ok(judge::judge(engine, &confinement, &inside, started.elapsed()))
}

fn spec(engine: &dyn Engine, image: &ImageName, network: NetworkMode) -> MachineSpec {
    let spec = MachineSpec::probe(image.clone());
    let limits = Limits {
        memory_bytes: MEMORY_BYTES,
        pids: PIDS,
        disk_bytes: engine.capabilities().disk_quota.then_some(QUOTA_BYTES),
        ..spec.limits
    };
    MachineSpec { limits, network, ..spec }
}
