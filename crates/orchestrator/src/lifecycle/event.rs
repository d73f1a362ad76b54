//! What can happen to a sandbox, and what can follow from it.

use sandbank_engine::DeathCause;

use super::{Millis, Standing};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing but time has passed.
    Tick,

    /// Others' machines are made meanwhile, and its turn is still worth waiting for.
    TurnNearer,
    /// The making of its machine begins now.
    TurnCame,
    /// The machine runs and its row says so.
    Created,
    CreateFailed {
        reason: String,
    },

    /// Somebody attached, or a connection to a port began.
    Opened,
    Closed,
    CommandStarted,
    /// The key was asked for again, perhaps with another TTL.
    Renewed {
        idle_ttl: Option<Millis>,
    },

    /// Somebody wants to know how busy it is right now.
    Look,
    /// The runner started anew: what ran before is gone.
    RunnerRestarted,
    /// The store did not take the lease.
    SaveFailed,
    Observed(Observed),
    ObserveFailed {
        serial: u64,
    },
    /// The engine is not there to lead to the runner, which may be as well as ever.
    EngineAway {
        serial: u64,
    },

    Stop {
        by: String,
    },
    Evict,
    Died {
        death: DeathCause,
    },
    Vanished {
        reason: String,
    },

    Pause,
    Resume,
    /// `commands` as seen just before a pause; nobody can ask afterwards.
    Changed {
        to: Standing,
        commands: Option<u64>,
    },
    ChangeFailed,
    /// The engine says that the machine stands like this.
    Found(Standing),

    Collected,
    Destroyed {
        attempt: u32,
    },
    DestroyFailed {
        attempt: u32,
    },
    Recorded {
        attempt: u32,
    },
    RecordFailed {
        attempt: u32,
    },
}

/// The runner's answer to how busy it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) serial: u64,
    pub(crate) commands: u64,
    /// Commands that ended since the runner started.
    pub(crate) ended: u64,
    /// When the last one ended; only known when the history was asked for.
    pub(crate) last_ended: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// It lives: watch for its death and say so.
    Watch,
    /// Ask the runner how busy it is; `history` also asks when the last command ended.
    Observe {
        serial: u64,
        history: bool,
    },
    SaveLease,
    Pause,
    Resume,
    /// The way out begins: give up the key, close the ports.
    Release,
    Collect,
    /// Stop whatever is still being done to the machine, then destroy it.
    Destroy {
        attempt: u32,
    },
    Record {
        attempt: u32,
    },
}
