//! The durations that decisions depend on.

use std::time::Duration;

use super::Millis;
use crate::{Settings, limits};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) create_deadline: Millis,
    /// How long a turn may take to come while no other machine is made.
    pub(crate) turn_patience: Millis,
    pub(crate) collect_deadline: Millis,
    pub(crate) stop_deadline: Millis,
    pub(crate) change_deadline: Millis,
    pub(crate) record_deadline: Millis,
    pub(crate) observe_deadline: Millis,
    /// From the end of a use to the first look at what it left running.
    pub(crate) first_look: Millis,
    /// Between two looks at a sandbox that stays busy, at most.
    pub(crate) last_look: Millis,
    /// Between two writes of a lease, at most.
    pub(crate) save_interval: Millis,
    pub(crate) first_retry: Millis,
    pub(crate) last_retry: Millis,
    /// Unanswered questions in a row after which an expired sandbox is lost.
    pub(crate) unanswered: u32,
    /// How long that many questions must have been unanswered if commands may be running.
    pub(crate) busy_silence: Millis,
}

impl Rules {
    pub(crate) fn from(settings: &Settings) -> Self {
        Self {
            create_deadline: millis(settings.create_deadline),
            turn_patience: millis(settings.turn_patience),
            collect_deadline: millis(limits::COLLECT_DEADLINE),
            stop_deadline: millis(settings.stop_deadline),
            change_deadline: millis(limits::CHANGE_DEADLINE),
            record_deadline: millis(limits::RECORD_DEADLINE),
            observe_deadline: millis(limits::OBSERVE_DEADLINE),
            first_look: millis(limits::FIRST_LOOK),
            last_look: millis(limits::LAST_LOOK),
            save_interval: millis(limits::SAVE_INTERVAL),
            first_retry: millis(limits::FIRST_RETRY),
            last_retry: millis(limits::LAST_RETRY),
            unanswered: limits::UNANSWERED_QUESTIONS,
            busy_silence: millis(limits::BUSY_SILENCE),
        }
    }

    /// The wait after a failed attempt: doubles each time, up to a limit.
    pub(crate) fn retry_after(&self, attempt: u32) -> Millis {
        let doublings = attempt.saturating_sub(1).min(20);
        (self.first_retry << doublings).clamp(1, self.last_retry)
    }
}

pub(crate) fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(FOREVER)
}

/// Longer than any machine runs, short enough to be added to any moment.
const FOREVER: Millis = 1 << 53;
