//! Why a sandbox ended. Exactly one per sandbox, kept in its row and its post-mortem.

use std::fmt;

use sandbank_engine::DeathCause;
use serde::{Deserialize, Serialize};

use crate::SandboxState;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    Stopped {
        by: String,
    },
    /// Nobody used it for its idle TTL.
    IdleExpired,
    /// Its absolute lifetime was over.
    LifetimeExpired,
    /// It was the least recently used idle one when a place was needed.
    Evicted,
    /// The first process of its machine died.
    RunnerDied {
        death: DeathCause,
    },
    CreateFailed {
        reason: String,
    },
    /// It vanished without anybody seeing how, or its runner does not answer.
    Lost {
        reason: String,
    },
}

impl Cause {
    /// The state a sandbox with this cause ends in.
    pub fn end_state(&self) -> SandboxState {
        match self {
            Self::Stopped { .. } | Self::IdleExpired | Self::LifetimeExpired | Self::Evicted => {
                SandboxState::Gone
            }
            Self::RunnerDied { .. } | Self::CreateFailed { .. } | Self::Lost { .. } => {
                SandboxState::Failed
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { by } => write!(f, "it was stopped by {by}"),
            Self::IdleExpired => f.write_str("nobody used it for its idle time to live"),
            Self::LifetimeExpired => f.write_str("its lifetime was over"),
            Self::Evicted => f.write_str("it was idle and its place was needed"),
            Self::RunnerDied { death } => match death {
                DeathCause::OutOfMemory => f.write_str("its runner died: out of memory"),
                DeathCause::Exited { code } => write!(f, "its runner died: exit code {code}"),
                DeathCause::Signaled { signal } => write!(f, "its runner died: signal {signal}"),
                DeathCause::WorkspaceGone => {
                    f.write_str("its runner died: its workspace was taken away")
                }
                DeathCause::ContainerRemoved => {
                    f.write_str("its container was removed outside of Sandbank")
                }
                DeathCause::ContainerKilled => {
                    f.write_str("its container was stopped or killed outside of Sandbank: signal 9")
                }
                DeathCause::Unknown => f.write_str("its runner died: nobody saw how"),
            },
            Self::CreateFailed { reason } => write!(f, "it could not be made: {reason}"),
            Self::Lost { reason } => write!(f, "it was lost: {reason}"),
        }
    }
}
