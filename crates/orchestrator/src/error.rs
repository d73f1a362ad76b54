//! Why an operation on a sandbox failed: a stable code, a sentence, and what to do next.

use std::sync::Arc;
use std::time::Duration;

use sandbank_channel::ChannelError;
use sandbank_engine::{Control, EngineError, SandboxId, WorkspaceId};
use sandbank_protocol::FaultCode;
use sandbank_store::StoreError;

use crate::Cause;

/// Cheap to clone: everybody who waited for the same create gets the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OrchestratorError {
    #[error("there is no sandbox {0}")]
    NotFound(SandboxId),
    #[error("sandbox {id} has ended: {cause}")]
    Gone { id: SandboxId, cause: Cause },
    #[error("all {max} sandboxes are in use")]
    AtLimit { max: usize, retry_after: Duration },
    #[error("sandbox {0} is paused")]
    Paused(SandboxId),
    #[error("{0}")]
    Conflict(String),
    /// For a caller who may not open one.
    #[error("the sandbox has a kept workspace")]
    KeptWorkspace,
    #[error(
        "the engine {name} is not configured here; there {}",
        are(.configured)
    )]
    NoSuchEngine { name: String, configured: Vec<&'static str> },
    /// Nothing of them is touched before their engine is back.
    #[error("{} of the engine {engine}, which is not configured", amount(*.sandboxes))]
    EngineNotConfigured { engine: String, sandboxes: usize },
    #[error("the workspace {id} is the engine {engine}'s, and no other can open it")]
    WorkspaceElsewhere { id: WorkspaceId, engine: String },
    #[error(
        "Port {port} is not enabled for this sandbox. Set ports=[{port}] when creating the sandbox."
    )]
    PortNotAllowed { id: SandboxId, port: u16 },
    #[error("failed to publish port {port}: {reason}")]
    PublishFailed { port: u16, reason: String },
    #[error("failed to publish port {port}: all host ports of ports.range, {range}, are taken")]
    NoHostPort { port: u16, range: String },
    #[error("the sandbox was not ready within {0:?}")]
    CreateTimedOut(Duration),
    #[error("other sandboxes are being made, and its turn did not come within {0:?}")]
    NoTurn(Duration),
    #[error("sandbox {0} is still being stopped")]
    StillStopping(SandboxId),
    #[error("the daemon is shutting down")]
    ShuttingDown,
    /// What would hold a new sandbox has not been attacked yet.
    #[error("no sandbox is made before containment is tested: {0}")]
    Untested(String),
    /// There is nothing that a canary could be made of.
    #[error(
        "no sandbox is made before containment is tested, and the engine {engine} has no image to \
         test it with"
    )]
    NoImageToTest { engine: &'static str },
    /// It was attacked, and something got out. Nobody tries again before the next start.
    #[error("the engine {engine} makes no sandboxes: {reason}")]
    NotContained { engine: &'static str, reason: String },
    #[error(transparent)]
    Engine(Arc<EngineError>),
    #[error(transparent)]
    Channel(Arc<ChannelError>),
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// A bug.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<EngineError> for OrchestratorError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Arc::new(error))
    }
}

impl From<ChannelError> for OrchestratorError {
    fn from(error: ChannelError) -> Self {
        Self::Channel(Arc::new(error))
    }
}

impl From<StoreError> for OrchestratorError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl OrchestratorError {
    /// Stable: clients may test it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "sandbox_not_found",
            Self::Gone { .. } => "sandbox_gone",
            Self::AtLimit { .. } => "at_limit",
            Self::Paused(_) => "sandbox_paused",
            Self::Conflict(_) => "conflict",
            Self::KeptWorkspace => "unauthorized",
            Self::NoSuchEngine { .. } => "engine_not_configured",
            Self::EngineNotConfigured { .. } => "engine_not_configured",
            Self::WorkspaceElsewhere { .. } => "workspace_elsewhere",
            Self::PortNotAllowed { .. } => "port_not_allowed",
            Self::PublishFailed { .. } => "publish_failed",
            Self::NoHostPort { .. } => "no_host_port",
            Self::CreateTimedOut(_) => "create_timed_out",
            Self::NoTurn(_) => "create_queue",
            Self::StillStopping(_) => "still_stopping",
            Self::ShuttingDown => "shutting_down",
            Self::Untested(_) | Self::NoImageToTest { .. } => "containment_untested",
            Self::NotContained { .. } => "not_contained",
            Self::Engine(error) => engine_code(error),
            Self::Channel(error) => channel_code(error),
            Self::Store(error) => store_code(error),
            Self::Internal(_) => "internal",
        }
    }

    /// What the caller can do, where there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound(_) => "create the sandbox, or list the ones there are".into(),
            Self::Gone { .. } => {
                "create it again with the same key; its post-mortem says more".into()
            }
            Self::AtLimit { retry_after, .. } => format!(
                "stop a sandbox, raise the limit, or try again in {} s",
                retry_after.as_secs().max(1)
            ),
            Self::Paused(_) => "resume it first".into(),
            Self::NoSuchEngine { .. } => {
                "name one that is, leave `engine` out, or add it to the setting engines \
                 (SANDBANK_ENGINES)"
                    .into()
            }
            Self::EngineNotConfigured { engine, .. } => format!(
                "start with SANDBANK_ENGINE={engine}, or with it among SANDBANK_ENGINES, and they \
                 are taken up again; delete them before you go without it"
            ),
            Self::WorkspaceElsewhere { engine, .. } => {
                format!("send \"engine\":\"{engine}\", or name another workspace")
            }
            Self::PortNotAllowed { port, .. } => {
                format!("name port {port} in `ports` when the sandbox is created")
            }
            Self::NoHostPort { .. } => {
                "close a port, stop a sandbox, or widen ports.range (SANDBANK_PORT_RANGE)".into()
            }
            Self::CreateTimedOut(_) | Self::NoTurn(_) | Self::StillStopping(_) => {
                "try again later".into()
            }
            Self::ShuttingDown => "try again when the daemon is back".into(),
            Self::Untested(_) => "the daemon goes on trying to test it; try again later".into(),
            Self::NoImageToTest { .. } => {
                "get an image, with `make images`, `sandbank image import` \
                                           or `docker pull`: it is tested as soon as it is there"
                    .into()
            }
            Self::NotContained { engine, .. } => format!(
                "`sandbank doctor --engine {engine} --attack` shows what got out; repair it and start \
                 the daemon again, or take {engine} out of SANDBANK_ENGINES"
            ),
            Self::Engine(error) => return engine_hint(error),
            Self::Store(error) => return error.hint(),
            Self::Conflict(_)
            | Self::KeptWorkspace
            | Self::PublishFailed { .. }
            | Self::Channel(_)
            | Self::Internal(_) => return None,
        })
    }

    /// What creates are refused with as long as this keeps containment from being tested.
    #[must_use]
    pub fn while_untested(self) -> Self {
        match self {
            Self::NoImageToTest { .. } => self,
            other => Self::Untested(other.to_string()),
        }
    }

    /// Whether the channel broke, and another one may help.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Channel(inner) if inner.is_broken())
    }

    /// Whether the runner refused for this reason.
    pub fn is_refused_as(&self, code: FaultCode) -> bool {
        matches!(self, Self::Channel(inner)
            if matches!(&**inner, ChannelError::Refused(fault) if fault.code == code))
    }

    /// Whether what was asked for cannot be had, while nothing failed: over HTTP a status of 4xx.
    pub fn is_callers(&self) -> bool {
        match self {
            Self::NotFound(_)
            | Self::Gone { .. }
            | Self::AtLimit { .. }
            | Self::Paused(_)
            | Self::Conflict(_)
            | Self::KeptWorkspace
            | Self::NoSuchEngine { .. }
            | Self::WorkspaceElsewhere { .. }
            | Self::PortNotAllowed { .. }
            | Self::NoHostPort { .. }
            | Self::StillStopping(_) => true,
            Self::PublishFailed { .. }
            | Self::EngineNotConfigured { .. }
            | Self::CreateTimedOut(_)
            | Self::NoTurn(_)
            | Self::ShuttingDown
            | Self::Untested(_)
            | Self::NoImageToTest { .. }
            | Self::NotContained { .. }
            | Self::Internal(_) => false,
            Self::Engine(error) => matches!(
                **error,
                EngineError::NotFound(_)
                    | EngineError::Dead(_)
                    | EngineError::ImageNotFound(_)
                    | EngineError::BadImage(_)
                    | EngineError::ImageInUse(_)
                    | EngineError::WorkspaceInUse { .. }
                    | EngineError::NotPulled { retryable: false, .. }
            ),
            Self::Channel(error) => {
                matches!(&**error, ChannelError::Refused(fault) if fault.code.status() < 500)
            }
            Self::Store(error) => matches!(**error, StoreError::Exists { .. }),
        }
    }

    /// Whether the same call may succeed later, unchanged.
    pub fn retryable(&self) -> bool {
        match self {
            Self::AtLimit { .. }
            | Self::NoHostPort { .. }
            | Self::CreateTimedOut(_)
            | Self::NoTurn(_)
            | Self::StillStopping(_)
            | Self::ShuttingDown
            | Self::Untested(_)
            | Self::NoImageToTest { .. } => true,
            Self::Engine(error) => {
                matches!(
                    **error,
                    EngineError::Exhausted(_)
                        | EngineError::Unavailable(_)
                        | EngineError::NotPulled { retryable: true, .. }
                )
            }
            Self::Channel(error) => error.is_broken(),
            Self::Store(error) => error.is_temporary(),
            _ => false,
        }
    }
}

fn are(configured: &[&str]) -> String {
    match configured {
        [only] => format!("is only {only}"),
        several => format!("are {}", several.join(", ")),
    }
}

fn amount(sandboxes: usize) -> String {
    match sandboxes {
        1 => "one sandbox here is".to_owned(),
        several => format!("{several} sandboxes here are"),
    }
}

fn engine_code(error: &EngineError) -> &'static str {
    match error {
        EngineError::NotFound(_) | EngineError::Dead(_) => "sandbox_gone",
        EngineError::ImageNotFound(_) => "image_not_found",
        EngineError::ImageInUse(_) => "image_in_use",
        EngineError::WorkspaceInUse { .. } => "workspace_in_use",
        EngineError::BadImage(_) => "bad_image",
        EngineError::NotPulled { .. } => "not_pulled",
        EngineError::ControlUnavailable { .. } => "control_unavailable",
        EngineError::StorageFull(_) => "storage_full",
        EngineError::Exhausted(_) => "engine_exhausted",
        EngineError::Taken(_) => "engine_unavailable",
        EngineError::Unavailable(_) => "engine_unavailable",
        EngineError::Io { .. } | EngineError::Internal(_) => "engine_failed",
    }
}

fn engine_hint(error: &EngineError) -> Option<String> {
    Some(match error {
        EngineError::ImageNotFound(name) if name.is_host() => {
            "host is the native engine's: make images with `make images`, import one with \
             `sandbank image import` or build one with `docker build`, and name it in the request \
             or in sandboxes.default_image"
                .into()
        }
        EngineError::ImageNotFound(name) => {
            format!(
                "pull it with `sandbank image pull {name}`, or with `docker pull {name}` where Docker \
                 makes the sandboxes; or import an archive of it with `sandbank image import`"
            )
        }
        EngineError::NotPulled { hint, .. } => hint.clone(),
        EngineError::BadImage(_) => "use another image, or have this one made again".into(),
        EngineError::ControlUnavailable {
            control: Control::IdMappedMounts | Control::NetworkEgress,
            ..
        } => "`sandbank doctor` says what to do".into(),
        EngineError::ControlUnavailable { control, .. } => format!(
            "`sandbank doctor` says what to do; SANDBANK_ALLOW_WEAKER={} goes without it",
            control.name()
        ),
        EngineError::WorkspaceInUse { .. } => "stop the sandboxes that have it first".into(),
        EngineError::StorageFull(_) => "free some space, or stop sandboxes".into(),
        EngineError::Exhausted(_) | EngineError::Unavailable(_) => "try again later".into(),
        _ => return None,
    })
}

fn channel_code(error: &ChannelError) -> &'static str {
    match error {
        ChannelError::Refused(fault) => match fault.code {
            FaultCode::Invalid => "invalid",
            FaultCode::NotFound => "not_found",
            FaultCode::Conflict => "conflict",
            FaultCode::PreconditionFailed => "precondition_failed",
            FaultCode::OutsideWorkspace => "outside_workspace",
            FaultCode::WrongKind => "wrong_kind",
            FaultCode::PermissionDenied => "permission_denied",
            FaultCode::StorageFull => "storage_full",
            FaultCode::LimitReached => "limit_reached",
            FaultCode::Closed => "closed",
            FaultCode::Refused => "refused",
            FaultCode::ProgramMissing => "program_missing",
            FaultCode::TimedOut => "timed_out",
            FaultCode::Internal => "runner_failed",
        },
        ChannelError::Broken(_) => "channel_broken",
        ChannelError::TimedOut(_) => "channel_timed_out",
        ChannelError::Violation(_) => "protocol_violation",
        ChannelError::Incompatible { .. } => "incompatible_runner",
        ChannelError::Stopped(_) => "workspace_unreachable",
    }
}

fn store_code(error: &StoreError) -> &'static str {
    match error {
        StoreError::Corrupt { .. } | StoreError::BadValue { .. } => "store_corrupt",
        StoreError::Newer { .. } => "store_newer",
        StoreError::Full { .. } => "store_full",
        StoreError::ReadOnly { .. } => "store_read_only",
        StoreError::Locked { .. } => "store_locked",
        StoreError::Exists { .. } => "conflict",
        StoreError::Io { .. } => "store_failed",
    }
}
