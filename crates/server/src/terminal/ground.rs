//! Where a terminal's command runs: with the runner of a sandbox, or with one that is in none.

use std::sync::Arc;

use sandbank_channel::{ChannelError, OutputStream, RunnerClient};
use sandbank_engine::{EngineError, SandboxId};
use sandbank_orchestrator::{Attached, OrchestratorError};
use sandbank_protocol::{CommandId, FaultCode};
use sandbank_workspace::{Held, Place, PlaceCalls, PlaceError, PlaceErrorKind};

use crate::app::App;
use crate::dialects::{place_error, sandboxd::reconnect};
use crate::error::ApiError;

#[derive(Clone)]
pub(crate) enum Ground {
    Sandbox(SandboxId),
    Elsewhere(Arc<dyn Place>),
}

/// The runner, held: a sandbox is busy meanwhile.
pub(crate) enum Hold {
    Sandbox(Attached),
    Elsewhere(Arc<dyn Place>, Held),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GroundError {
    #[error(transparent)]
    Sandbox(#[from] OrchestratorError),
    #[error(transparent)]
    Elsewhere(#[from] PlaceError),
}

impl Ground {
    pub(super) async fn hold(&self, app: &App) -> Result<Hold, GroundError> {
        match self {
            Self::Sandbox(id) => Ok(Hold::Sandbox(app.orchestrator().attach(id).await?)),
            Self::Elsewhere(place) => Ok(Hold::Elsewhere(place.clone(), place.client().await?)),
        }
    }
}

impl Hold {
    pub(crate) fn ground(&self) -> Ground {
        match self {
            Self::Sandbox(attached) => Ground::Sandbox(attached.sandbox_id().clone()),
            Self::Elsewhere(place, _) => Ground::Elsewhere(place.clone()),
        }
    }

    /// Makes an idempotent call, again when the connection broke.
    pub(crate) async fn run<T, F, A>(&self, call: F) -> Result<T, GroundError>
    where
        T: Send,
        F: Fn(RunnerClient) -> A + Send + Sync,
        A: Future<Output = Result<T, ChannelError>> + Send,
    {
        match self {
            Self::Sandbox(attached) => Ok(attached.run(call).await?),
            Self::Elsewhere(place, _) => Ok(place.run(call).await?),
        }
    }

    pub(super) async fn look_on(
        &self,
        command: &CommandId,
        after: u64,
    ) -> Result<OutputStream, GroundError> {
        self.run(|client| async move { client.look_on(command, after).await }).await
    }

    /// Resolves when everything that runs there is over, with the cause.
    pub(super) async fn ended(&self) -> String {
        match self {
            Self::Sandbox(attached) => attached.ended().await.to_string(),
            Self::Elsewhere(..) => std::future::pending().await,
        }
    }
}

impl GroundError {
    /// Whether it may be otherwise in a moment.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Sandbox(error) => reconnect::is_broken(error),
            Self::Elsewhere(error) => error.may_pass(),
        }
    }

    /// Whether there is no runner to speak to, for a moment or until somebody mends it.
    pub(super) fn is_away(&self) -> bool {
        match self {
            Self::Sandbox(OrchestratorError::Engine(error)) => {
                matches!(**error, EngineError::Unavailable(_))
            }
            Self::Sandbox(error) => reconnect::is_broken(error),
            Self::Elsewhere(error) => error.kind() != PlaceErrorKind::Refused,
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.channel(), Some(ChannelError::Refused(_)))
    }

    pub(super) fn refused_as(&self, code: FaultCode) -> bool {
        self.channel().is_some_and(|error| reconnect::refused_as(error, code))
    }

    /// Why nothing of it is there any more.
    pub(super) fn gone(&self) -> Option<String> {
        match self {
            Self::Sandbox(OrchestratorError::Gone { cause, .. }) => Some(cause.to_string()),
            Self::Sandbox(OrchestratorError::NotFound(_)) => Some("the sandbox is gone".to_owned()),
            _ => None,
        }
    }

    fn channel(&self) -> Option<&ChannelError> {
        match self {
            Self::Sandbox(OrchestratorError::Channel(error)) => Some(error),
            Self::Elsewhere(PlaceError::Channel(error)) => Some(error),
            _ => None,
        }
    }
}

/// For whoever names a command: what the runner does not know is not found.
impl From<GroundError> for ApiError {
    fn from(error: GroundError) -> Self {
        if error.refused_as(FaultCode::NotFound) {
            return Self::not_found("command_not_found");
        }
        match error {
            GroundError::Sandbox(error) => error.into(),
            GroundError::Elsewhere(error) => place_error(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use sandbank_channel::{Obstacle, ObstacleKind};
    use sandbank_protocol::Fault;

    use super::*;

    #[test]
    fn a_runner_that_cannot_be_spoken_to_is_away_and_one_that_refuses_is_not() {
        use ObstacleKind::{Auth, BadGateway, BadPath, BreakerOpen, Unavailable, Version};
        for kind in [Auth, BadGateway, BadPath, BreakerOpen, Unavailable, Version] {
            let error = PlaceError::from(ChannelError::from(Obstacle::new(kind, "why")));
            assert!(GroundError::from(error).is_away(), "{kind:?}");
        }
        let fault = Fault::new(FaultCode::Conflict, "why");
        let refused = PlaceError::from(ChannelError::Refused(fault));
        assert!(!GroundError::from(refused).is_away());
        let silent = OrchestratorError::from(EngineError::Unavailable("why".to_owned()));
        assert!(GroundError::from(silent).is_away());
        let wrong = OrchestratorError::from(EngineError::Internal("why".to_owned()));
        assert!(!GroundError::from(wrong).is_away());
    }
}
