//! Which answer each inner error gets. Caller errors are 4xx; what a runner says is clipped,
//! because it comes from inside a sandbox.

use std::time::Duration;

use http::StatusCode;
use sandbank_channel::ChannelError;
use sandbank_engine::EngineError;
use sandbank_orchestrator::OrchestratorError;
use sandbank_protocol::{Fault, FaultCode};
use sandbank_store::StoreError;
use serde_json::json;

use super::ApiError;
use crate::limits::{MAX_RUNNER_MESSAGE_CHARS, RETRY_SOON};

impl From<OrchestratorError> for ApiError {
    fn from(error: OrchestratorError) -> Self {
        let mut answer = match &error {
            OrchestratorError::Channel(inner) => return Self::from(&**inner),
            OrchestratorError::NotFound(_) => Self::sandbox_not_found(),
            OrchestratorError::KeptWorkspace => Self::unauthorized().with_hint(
                "a kept workspace is opened with a token only, on a loopback address too: send the \
                 one from the data directory's `token` file as `Authorization: Bearer <token>`, or \
                 name another key and no workspace",
            ),
            OrchestratorError::Gone { id, cause } => Self::not_found("gone")
                .with_details(json!({ "sandboxId": id, "cause": cause }))
                .with_hint(format!(
                    "the sandbox has ended: {cause}; create it again with the same key"
                )),
            _ => Self::new(status(&error), error.code(), error.to_string()),
        };
        if answer.hint.is_none() {
            answer.hint = error.hint();
        }
        answer.retryable = error.retryable();
        answer.retry_after = match &error {
            OrchestratorError::AtLimit { retry_after, .. } => Some(*retry_after),
            _ if answer.retryable => Some(RETRY_SOON),
            _ => None,
        };
        if answer.status.is_server_error() {
            tracing::warn!(code = answer.code, %error, "a request failed");
        }
        answer
    }
}

fn status(error: &OrchestratorError) -> StatusCode {
    match error {
        OrchestratorError::NotFound(_) | OrchestratorError::Gone { .. } => StatusCode::NOT_FOUND,
        OrchestratorError::AtLimit { .. } | OrchestratorError::NoHostPort { .. } => {
            StatusCode::TOO_MANY_REQUESTS
        }
        OrchestratorError::Paused(_)
        | OrchestratorError::Conflict(_)
        | OrchestratorError::WorkspaceElsewhere { .. }
        | OrchestratorError::StillStopping(_) => StatusCode::CONFLICT,
        OrchestratorError::KeptWorkspace => StatusCode::UNAUTHORIZED,
        OrchestratorError::PortNotAllowed { .. } | OrchestratorError::NoSuchEngine { .. } => {
            StatusCode::BAD_REQUEST
        }
        OrchestratorError::PublishFailed { .. } => StatusCode::BAD_GATEWAY,
        OrchestratorError::CreateTimedOut(_)
        | OrchestratorError::NoTurn(_)
        | OrchestratorError::ShuttingDown
        | OrchestratorError::Untested(_)
        | OrchestratorError::NoImageToTest { .. }
        | OrchestratorError::NotContained { .. } => StatusCode::SERVICE_UNAVAILABLE,
        OrchestratorError::Engine(error) => engine_status(error),
        OrchestratorError::Store(error) => store_status(error),
        OrchestratorError::Channel(_) => StatusCode::BAD_GATEWAY,
        OrchestratorError::EngineNotConfigured { .. } | OrchestratorError::Internal(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

fn engine_status(error: &EngineError) -> StatusCode {
    match error {
        EngineError::NotFound(_) | EngineError::Dead(_) => StatusCode::NOT_FOUND,
        EngineError::ImageNotFound(_) | EngineError::BadImage(_) => StatusCode::BAD_REQUEST,
        EngineError::ImageInUse(_) | EngineError::WorkspaceInUse { .. } => StatusCode::CONFLICT,
        // What was named is not to be had; or a registry is not well.
        EngineError::NotPulled { retryable: false, .. } => StatusCode::BAD_REQUEST,
        EngineError::NotPulled { retryable: true, .. } => StatusCode::BAD_GATEWAY,
        EngineError::StorageFull(_) => StatusCode::INSUFFICIENT_STORAGE,
        EngineError::ControlUnavailable { .. }
        | EngineError::Exhausted(_)
        | EngineError::Taken(_)
        | EngineError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        EngineError::Io { .. } | EngineError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn store_status(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Full { .. } => StatusCode::INSUFFICIENT_STORAGE,
        StoreError::Exists { .. } => StatusCode::CONFLICT,
        StoreError::Locked { .. } | StoreError::ReadOnly { .. } | StoreError::Io { .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        OrchestratorError::from(error).into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        OrchestratorError::from(error).into()
    }
}

impl From<ChannelError> for ApiError {
    fn from(error: ChannelError) -> Self {
        Self::from(&error)
    }
}

impl From<&ChannelError> for ApiError {
    fn from(error: &ChannelError) -> Self {
        match error {
            ChannelError::Refused(fault) => refused(fault),
            ChannelError::Broken(_) | ChannelError::TimedOut(_) => Self::overloaded(
                StatusCode::SERVICE_UNAVAILABLE,
                "sandbox_unreachable",
                "the sandbox does not answer",
                Duration::from_secs(1),
            ),
            // Nothing is wrong with it or in it; it is only of another time.
            ChannelError::Incompatible { .. } => {
                tracing::warn!(%error, "a runner is of another version");
                Self::new(StatusCode::CONFLICT, "incompatible_runner", error.to_string())
                    .with_hint("use the version of sandbank that made it, or stop it")
            }
            ChannelError::Violation(_) => {
                tracing::warn!(%error, "a runner broke the protocol");
                Self::new(StatusCode::BAD_GATEWAY, "runner_failed", clipped(&error.to_string()))
                    .with_hint("stop the sandbox and create it again")
            }
            ChannelError::Stopped(obstacle) => {
                tracing::warn!(%error, "a runner on another machine was not reached");
                let message = clipped(&obstacle.message);
                Self::new(StatusCode::BAD_GATEWAY, "workspace_unreachable", message)
                    .with_hint("look at the workspace service and its log")
            }
        }
    }
}

fn refused(fault: &Fault) -> ApiError {
    let (status, code) = match fault.code {
        FaultCode::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
        FaultCode::OutsideWorkspace => (StatusCode::BAD_REQUEST, "outside_workspace"),
        FaultCode::PermissionDenied => (StatusCode::FORBIDDEN, "permission_denied"),
        FaultCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        FaultCode::Conflict => (StatusCode::CONFLICT, "conflict"),
        FaultCode::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
        FaultCode::WrongKind => (StatusCode::CONFLICT, "wrong_kind"),
        FaultCode::Closed => (StatusCode::GONE, "closed"),
        FaultCode::LimitReached => (StatusCode::TOO_MANY_REQUESTS, "limit_reached"),
        FaultCode::Refused => (StatusCode::BAD_GATEWAY, "refused"),
        FaultCode::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
        FaultCode::ProgramMissing => (StatusCode::NOT_IMPLEMENTED, "program_missing"),
        FaultCode::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "timed_out"),
        FaultCode::Internal => (StatusCode::BAD_GATEWAY, "runner_failed"),
    };
    let error = ApiError::new(status, code, clipped(&fault.message));
    match fault.code {
        FaultCode::LimitReached => {
            ApiError { retryable: true, retry_after: Some(RETRY_SOON), ..error }
        }
        FaultCode::PreconditionFailed => {
            error.with_hint("read the file again: nothing was changed, and its ETag is another now")
        }
        FaultCode::ProgramMissing => error.with_hint(
            "create the sandbox from an image that has it, or install it in the sandbox",
        ),
        FaultCode::StorageFull => error.with_hint("delete files in the workspace"),
        _ => error,
    }
}

/// Bounded and on one line.
fn clipped(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    visible.take(MAX_RUNNER_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbank_engine::SandboxId;
    use sandbank_orchestrator::Cause;

    #[test]
    fn a_gone_sandbox_is_not_found_and_says_why() {
        let gone = OrchestratorError::Gone { id: SandboxId::random(), cause: Cause::IdleExpired };
        let error = ApiError::from(gone);
        assert_eq!((error.status, error.code), (StatusCode::NOT_FOUND, "gone"));
        assert_eq!(error.message, "Not found");
        assert_eq!(error.details.unwrap()["cause"]["kind"], "idle_expired");
    }

    #[test]
    fn the_limit_is_429_with_the_time_to_wait() {
        let retry_after = Duration::from_secs(7);
        let error = ApiError::from(OrchestratorError::AtLimit { max: 2, retry_after });
        assert_eq!(error.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!((error.retryable, error.retry_after), (true, Some(retry_after)));
    }

    #[test]
    fn what_is_the_callers_is_4xx_and_what_failed_is_5xx() {
        let id = SandboxId::random;
        let engine = |error: EngineError| OrchestratorError::from(error);
        let refused =
            |code| OrchestratorError::from(ChannelError::Refused(Fault::new(code, "words")));
        for error in [
            OrchestratorError::NotFound(id()),
            OrchestratorError::StillStopping(id()),
            OrchestratorError::NoHostPort { port: 1, range: String::new() },
            OrchestratorError::PublishFailed { port: 1, reason: String::new() },
            OrchestratorError::ShuttingDown,
            OrchestratorError::Internal(String::new()),
            engine(EngineError::Dead(id())),
            engine(EngineError::BadImage(String::new())),
            engine(EngineError::StorageFull(String::new())),
            engine(EngineError::Unavailable(String::new())),
            refused(FaultCode::LimitReached),
            refused(FaultCode::Closed),
            refused(FaultCode::ProgramMissing),
            refused(FaultCode::Internal),
            ChannelError::TimedOut(Duration::ZERO).into(),
        ] {
            let is_callers = error.is_callers();
            let answer = ApiError::from(error);
            assert_eq!(answer.status.is_client_error(), is_callers, "{}", answer.code);
        }
    }

    #[test]
    fn what_a_runner_says_is_clipped_and_cleaned() {
        let long = format!("a\nb\u{1b}[31m{}", "x".repeat(10_000));
        let error = ApiError::from(ChannelError::Refused(Fault::new(FaultCode::Invalid, long)));
        assert!(error.message.starts_with("a b [31mx"));
        assert_eq!(error.message.chars().count(), MAX_RUNNER_MESSAGE_CHARS);
    }
}
