//! Stopping a sandbox on request.

use sandbank_engine::SandboxId;
use tokio::time::timeout;

use crate::OrchestratorError;
use crate::context::Context;
use crate::lifecycle::{Ending, Event, Phase, Step};
use crate::limits::COLLECT_DEADLINE;

/// Returns when it is gone. What the engine could not destroy in time is tried again without the
/// caller.
pub(crate) async fn stop(
    context: &Context,
    id: &SandboxId,
    by: &str,
) -> Result<bool, OrchestratorError> {
    let Some(sandbox) = context.registry.find(id) else { return Ok(false) };
    sandbox.send(Event::Stop { by: by.to_owned() });
    let patience = context.settings.stop_deadline + 2 * COLLECT_DEADLINE;
    let _ = timeout(patience, sandbox.ended()).await;
    let phase = sandbox.view.borrow().state.phase.clone();
    match phase {
        // Without its machine it is gone, whether or not the store knows already.
        Phase::Ended { .. } | Phase::Ending(Ending { step: Step::Record, .. }) => Ok(true),
        _ if sandbox.mailbox.is_closed() => Err(OrchestratorError::ShuttingDown),
        _ => Err(OrchestratorError::StillStopping(id.clone())),
    }
}
