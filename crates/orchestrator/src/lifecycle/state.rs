//! What the task of one sandbox knows about it.

use super::{Lease, Millis};
use crate::{Cause, SandboxState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) lease: Lease,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Creating {
        deadline: Millis,
    },
    Running,
    /// On the way to paused or back.
    Changing {
        to: Standing,
        deadline: Millis,
    },
    Paused,
    Ending(Ending),
    Ended {
        cause: Cause,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Running,
    Paused,
}

/// The way out. The cause never changes once it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) cause: Cause,
    pub(crate) step: Step,
    /// Counts the attempts at this step from 1; answers to an older one are ignored.
    pub(crate) attempt: u32,
    /// Between two attempts, rather than in one.
    pub(crate) waiting: bool,
    /// The deadline of the attempt, or the end of the wait.
    pub(crate) until: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Gather what the post-mortem will say, while there is somebody to ask.
    Collect,
    Destroy,
    /// Close the row.
    Record,
}

impl State {
    pub(crate) fn creating(deadline: Millis, lease: Lease) -> Self {
        Self { phase: Phase::Creating { deadline }, lease }
    }

    /// As callers see it. A failure is shown at once, though its remains are still being removed.
    pub(crate) fn visible(&self) -> SandboxState {
        match &self.phase {
            Phase::Creating { .. } => SandboxState::Creating,
            Phase::Running | Phase::Changing { to: Standing::Paused, .. } => SandboxState::Running,
            Phase::Paused | Phase::Changing { to: Standing::Running, .. } => SandboxState::Paused,
            Phase::Ending(ending) => match ending.cause.end_state() {
                SandboxState::Failed => SandboxState::Failed,
                _ => SandboxState::Stopping,
            },
            Phase::Ended { cause } => cause.end_state(),
        }
    }

    pub(crate) fn cause(&self) -> Option<&Cause> {
        match &self.phase {
            Phase::Ending(Ending { cause, .. }) | Phase::Ended { cause } => Some(cause),
            _ => None,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }
}
