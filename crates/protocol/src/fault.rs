//! The one error shape of the channel.

use serde::{Deserialize, Serialize};

/// Why the runner refused. The daemon treats the text as untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub code: FaultCode,
    pub message: String,
}

impl Fault {
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    /// The request itself makes no sense.
    Invalid,
    NotFound,
    /// The id is taken by another spec, an offset leaves a gap, the target exists.
    Conflict,
    /// What is there is not what the request expects.
    PreconditionFailed,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// A directory, device, socket or pipe where a regular file is needed, or the reverse.
    WrongKind,
    PermissionDenied,
    /// No space or quota left.
    StorageFull,
    /// A named limit was reached.
    LimitReached,
    /// The command's stdin is closed, or the command has ended.
    Closed,
    /// Nothing listens on that port.
    Refused,
    /// A program that the request needs is not in the sandbox.
    ProgramMissing,
    /// It took longer than it may and was ended.
    TimedOut,
    /// A bug or an unexpected kernel answer.
    Internal,
}

impl FaultCode {
    /// The HTTP status the runner answers with.
    pub fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::OutsideWorkspace => 400,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::Conflict | Self::WrongKind => 409,
            Self::Closed => 410,
            Self::PreconditionFailed => 412,
            Self::LimitReached => 429,
            Self::Internal => 500,
            Self::ProgramMissing => 501,
            Self::Refused => 502,
            Self::TimedOut => 504,
            Self::StorageFull => 507,
        }
    }
}
