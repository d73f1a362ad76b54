//! What errors say of a channel that broke, for those who go on over another one.

use sandbank_channel::ChannelError;
use sandbank_orchestrator::OrchestratorError;
pub(crate) use sandbank_orchestrator::Retry;
use sandbank_protocol::FaultCode;

use crate::error::ApiError;

pub(crate) fn is_broken(error: &OrchestratorError) -> bool {
    error.is_broken()
}

pub(crate) fn refused_as(error: &ChannelError, code: FaultCode) -> bool {
    matches!(error, ChannelError::Refused(fault) if fault.code == code)
}

/// For routes that name a command: what the runner does not know is not found.
pub(crate) fn command_error(error: OrchestratorError) -> ApiError {
    if error.is_refused_as(FaultCode::NotFound) {
        return ApiError::not_found("command_not_found");
    }
    error.into()
}
