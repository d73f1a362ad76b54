//! Answers that wait for a later decision.

use tokio::sync::oneshot;

use super::Driver;
use crate::lifecycle::{Ending, Phase, Standing};
use crate::{Cause, OrchestratorError};

/// Callers whose answer depends on a later decision.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) lookers: Vec<oneshot::Sender<()>>,
    pub(super) evictors: Vec<oneshot::Sender<bool>>,
    pub(super) changers: Vec<(Standing, oneshot::Sender<Result<(), OrchestratorError>>)>,
    pub(super) change_error: Option<OrchestratorError>,
}

impl Driver {
    /// What those who wait for its creation are told when no effect gave a reason.
    pub(super) fn failure_of(&self, cause: &Cause) -> OrchestratorError {
        match cause {
            Cause::CreateFailed { .. } => {
                OrchestratorError::CreateTimedOut(self.context.settings.create_deadline)
            }
            cause => self.sandbox.gone(cause.clone()),
        }
    }

    /// Answers those whose question the last decision settled.
    pub(super) fn answer(&mut self) {
        let look = &self.state.lease.look;
        if look.asked.is_none() {
            for looker in self.waiting.lookers.drain(..) {
                let _ = looker.send(());
            }
        }
        if !look.evict {
            let evicted = matches!(self.state.cause(), Some(Cause::Evicted));
            for evictor in self.waiting.evictors.drain(..) {
                let _ = evictor.send(evicted);
            }
        }
        let standing = match &self.state.phase {
            Phase::Changing { .. } | Phase::Creating { .. } => return,
            Phase::Running => Ok(Standing::Running),
            Phase::Paused => Ok(Standing::Paused),
            Phase::Ending(Ending { cause, .. }) | Phase::Ended { cause } => {
                Err(self.sandbox.gone(cause.clone()))
            }
        };
        let error = self.waiting.change_error.take();
        for (wanted, changer) in self.waiting.changers.drain(..) {
            let answer = match &standing {
                Ok(standing) if *standing == wanted => Ok(()),
                Ok(_) => Err(error.clone().unwrap_or_else(|| {
                    OrchestratorError::Conflict("the change took too long".to_owned())
                })),
                Err(gone) => Err(gone.clone()),
            };
            let _ = changer.send(answer);
        }
    }
}
