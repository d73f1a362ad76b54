//! Room at the limit of sandboxes: the least recently used idle one goes, if the configuration
//! says so. A busy one never does.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::context::Context;
use crate::limits::{FIRST_ADVICE, LAST_ADVICE};
use crate::sandbox::{Message, SharedSandbox};
use crate::{OrchestratorError, SandboxState};

/// How long a caller waits for room.
pub(crate) struct Patience {
    until: Instant,
}

impl Patience {
    pub(crate) fn new(length: Duration) -> Self {
        Self { until: Instant::now() + length }
    }
}

/// Returns when a sandbox has ended to make room; somebody else may have taken the place. Runners
/// that are slow to say whether they are idle use up the caller's patience, and no more.
pub(crate) async fn make(context: &Context, patience: &Patience) -> Result<(), OrchestratorError> {
    if !context.settings.evict_idle {
        return Err(at_limit(context));
    }
    match timeout_at(patience.until, evict_one(context)).await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(at_limit(context)),
    }
}

/// Says whether there was one that could go.
async fn evict_one(context: &Context) -> bool {
    for sandbox in idle_ones(context) {
        if sandbox.ask(Message::Evict).await.unwrap_or(false) {
            sandbox.ended().await;
            return true;
        }
    }
    false
}

/// As far as is known, least recently used first. Each is asked before it is stopped.
fn idle_ones(context: &Context) -> Vec<SharedSandbox> {
    let mut idle: Vec<_> = context
        .registry
        .all()
        .into_iter()
        .filter_map(|sandbox| {
            let state = sandbox.view.borrow().state.clone();
            let alive = matches!(state.visible(), SandboxState::Running | SandboxState::Paused);
            (alive && !state.lease.is_busy()).then_some((state.lease.last_active, sandbox))
        })
        .collect();
    idle.sort_by_key(|(last_active, _)| *last_active);
    idle.into_iter().map(|(_, sandbox)| sandbox).collect()
}

/// The advice is the moment when the first idle sandbox expires, within bounds.
fn at_limit(context: &Context) -> OrchestratorError {
    let now = context.clock.boot_ms();
    let first_expiry = idle_ones(context)
        .iter()
        .map(|sandbox| sandbox.view.borrow().state.lease.idle_deadline().saturating_sub(now))
        .min();
    let wait = first_expiry.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or(0)));
    OrchestratorError::AtLimit {
        max: context.settings.max_sandboxes,
        retry_after: wait.unwrap_or(LAST_ADVICE / 10).clamp(FIRST_ADVICE, LAST_ADVICE),
    }
}
