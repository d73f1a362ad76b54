//! A span for what a caller asks of the orchestrator, where anybody collects them.

use sandbank_channel::trace;
use sandbank_engine::SandboxId;
use tracing::{Instrument, field};

use crate::OrchestratorError;

/// The caller's own mistakes are no errors of the operation.
pub(crate) async fn operation<T>(
    name: &'static str,
    sandbox: Option<&SandboxId>,
    work: impl Future<Output = Result<T, OrchestratorError>>,
) -> Result<T, OrchestratorError> {
    if !trace::is_on() {
        return work.await;
    }
    let span = tracing::info_span!(
        target: trace::SPANS,
        "orchestrator",
        otel.name = name,
        otel.status_code = field::Empty,
        sandbox = sandbox.map(field::display),
    );
    let done = work.instrument(span.clone()).await;
    if done.as_ref().is_err_and(|error| !error.is_callers()) {
        span.record("otel.status_code", "ERROR");
    }
    done
}
