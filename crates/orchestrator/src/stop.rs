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
    let mut view = sandbox.view.clone();
    let _ = timeout(patience, view.wait_for(|view| is_done(&view.state.phase))).await;
    let phase = sandbox.view.borrow().state.phase.clone();
    match phase {
        // Without its machine it is gone, whether or not the store knows already.
        Phase::Ended { .. } | Phase::Ending(Ending { step: Step::Record, .. }) => Ok(true),
        _ if sandbox.mailbox.is_closed() => Err(OrchestratorError::ShuttingDown),
        _ => Err(OrchestratorError::StillStopping(id.clone())),
    }
}

/// Over, or its machine is and the store does not take it: that is tried again without the caller.
fn is_done(phase: &Phase) -> bool {
    match phase {
        Phase::Ended { .. } => true,
        Phase::Ending(Ending { step: Step::Record, attempt, waiting, .. }) => {
            *waiting || *attempt > 1
        }
        _ => false,
    }
}
