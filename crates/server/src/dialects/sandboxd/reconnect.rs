//! Getting hold of a sandbox again after its channel broke. The runner keeps everything, so
//! whoever knows where they were can go on.

use std::time::Duration;

use sandbank_channel::ChannelError;
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::FaultCode;

use crate::error::ApiError;
use crate::limits::{MAX_RECONNECTS, RECONNECT_PAUSE};

/// A bounded number of tries with growing pauses.
pub(crate) struct Retry {
    left: u32,
    pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { left: MAX_RECONNECTS, pause: RECONNECT_PAUSE }
    }
}

impl Retry {
    /// Whether there was a try since it was made.
    pub(in crate::dialects) fn is_used(&self) -> bool {
        self.left < MAX_RECONNECTS
    }

    /// Waits before the next try; false when there is none left.
    pub(crate) async fn again(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.left -= 1;
        self.pause *= 2;
        true
    }
}

pub(crate) fn is_broken(error: &OrchestratorError) -> bool {
    matches!(error, OrchestratorError::Channel(inner) if inner.is_broken())
}

fn is_unknown(error: &OrchestratorError) -> bool {
    matches!(error, OrchestratorError::Channel(inner) if refused_as(inner, FaultCode::NotFound))
}

pub(crate) fn refused_as(error: &ChannelError, code: FaultCode) -> bool {
    matches!(error, ChannelError::Refused(fault) if fault.code == code)
}

/// For routes that name a command: what the runner does not know is not found.
pub(crate) fn command_error(error: OrchestratorError) -> ApiError {
    if is_unknown(&error) { ApiError::not_found("command_not_found") } else { error.into() }
}
