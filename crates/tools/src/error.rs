//! Why a tool did not do its work, in words for the model and for the person behind it.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolError {
    #[error("there is no tool called {0:?}")]
    UnknownTool(String),
    #[error("{0}")]
    InvalidInput(String),
    /// A rule, or a person, said no.
    #[error("{0}")]
    Denied(String),
    #[error("{0}")]
    NotFound(String),
    /// The sandbox could not be had, or filled; trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// Whoever called no longer wants it.
    #[error("the call was cancelled")]
    Cancelled,
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    /// A word for programs; the message is for people.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool(_) => "unknown_tool",
            Self::InvalidInput(_) => "invalid_input",
            Self::Denied(_) => "denied",
            Self::NotFound(_) => "not_found",
            Self::Unavailable(_) => "unavailable",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}
