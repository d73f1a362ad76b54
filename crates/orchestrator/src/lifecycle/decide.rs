//! The decisions.
//!
//! ```text
//!                Created                Pause
//!   Creating ──────────────▶ Running ──────────▶ Changing(Paused) ──▶ Paused
//!      │                      │   ▲                                   │  │
//!      │ CreateFailed         │   └─────────── Changing(Running) ◀────┘  │
//!      │ deadline, Stop       │                               Resume     │
//!      │                      │ Stop, Evict, idle or lifetime expired,   │
//!      │                      │ Died, Vanished (from Changing, too)      │
//!      │                      ▼                                          │
//!      │              Ending(Collect) ◀──────────────────────────────────┘
//!      │                      │ Collected, deadline
//!      │                      ▼
//!      └─────────────▶ Ending(Destroy) ⟲ retried until Destroyed
//!                             ▼
//!                      Ending(Record)  ⟲ retried until Recorded
//!                             ▼
//!                           Ended      (final)
//! ```
//!
//! Creating, Changing and Ending always have a deadline. Idle expiry and eviction ask the runner
//! first and happen only when it says that no command runs. A runner that does not answer is not
//! idle but lost: soon if nothing was last seen running, else only after a long silence. While its
//! engine is away, nobody can tell, and it stays.

use super::{Action, Event, Millis, Phase, Rules, Standing, State};
use crate::Cause;

pub(crate) fn decide(
    state: State,
    event: Event,
    now: Millis,
    rules: &Rules,
) -> (State, Vec<Action>) {
    let mut turn = Turn { state, actions: Vec::new(), now, rules };
    match turn.state.phase {
        Phase::Creating { .. } => turn.creating(event),
        Phase::Running | Phase::Changing { .. } | Phase::Paused => turn.living(event),
        Phase::Ending(_) => turn.ending(event),
        Phase::Ended { .. } => {}
    }
    turn.deadlines();
    (turn.state, turn.actions)
}

/// One decision in the making.
pub(super) struct Turn<'a> {
    pub(super) state: State,
    pub(super) actions: Vec<Action>,
    pub(super) now: Millis,
    pub(super) rules: &'a Rules,
}

impl Turn<'_> {
    fn creating(&mut self, event: Event) {
        match event {
            Event::TurnNearer => {
                let patience = self.rules.turn_patience + self.rules.create_deadline;
                self.state.phase = Phase::Creating { deadline: self.now + patience };
            }
            Event::TurnCame => {
                let deadline = self.now + self.rules.create_deadline;
                self.state.phase = Phase::Creating { deadline };
            }
            Event::Created => {
                self.state.phase = Phase::Running;
                self.state.lease.touch(self.now);
                self.state.lease.ended = Some(0);
                self.actions.push(Action::Watch);
            }
            Event::CreateFailed { reason } => self.end(Cause::CreateFailed { reason }),
            Event::Stop { by } => self.end(Cause::Stopped { by }),
            _ => {}
        }
    }

    fn living(&mut self, event: Event) {
        let (now, rules) = (self.now, self.rules);
        let lease = &mut self.state.lease;
        match event {
            Event::Opened => {
                lease.open += 1;
                lease.touch(now);
                lease.look.evict = false;
            }
            Event::Closed => {
                lease.open = lease.open.saturating_sub(1);
                lease.touch(now);
                lease.look_soon(now, rules);
            }
            Event::CommandStarted => {
                lease.commands = lease.commands.max(1);
                lease.heard();
                lease.touch(now);
                lease.look.evict = false;
                lease.look_soon(now, rules);
            }
            Event::Renewed { idle_ttl } => self.renew(idle_ttl),
            Event::Look => self.look_now(),
            Event::RunnerRestarted => {
                (lease.commands, lease.ended) = (0, None);
                lease.heard();
                lease.look_soon(now, rules);
            }
            Event::SaveFailed => lease.saved = Millis::MIN,
            Event::Observed(observed) => self.observed(&observed),
            Event::ObserveFailed { serial } => self.observe_failed(serial),
            Event::EngineAway { serial } => self.engine_away(serial),
            Event::Stop { by } => self.end(Cause::Stopped { by }),
            Event::Evict => self.evict(),
            Event::Died { death } => self.end(Cause::RunnerDied { death }),
            Event::Vanished { reason } => self.end(Cause::Lost { reason }),
            Event::Pause => self.change(Standing::Paused),
            Event::Resume => self.change(Standing::Running),
            Event::Changed { to, commands } => self.changed(to, commands),
            Event::ChangeFailed => self.change_failed(),
            Event::Found(standing) => self.found(standing),
            _ => {}
        }
    }

    fn renew(&mut self, idle_ttl: Option<Millis>) {
        let lease = &mut self.state.lease;
        lease.touch(self.now);
        lease.look.evict = false;
        if let Some(idle_ttl) = idle_ttl.filter(|ttl| *ttl != lease.idle_ttl) {
            lease.idle_ttl = idle_ttl;
            lease.mark_saved(self.now);
            self.actions.push(Action::SaveLease);
        }
    }

    fn change(&mut self, to: Standing) {
        let possible = match to {
            Standing::Paused => self.state.phase == Phase::Running,
            Standing::Running => self.state.phase == Phase::Paused,
        };
        if possible {
            self.state.lease.touch(self.now);
            self.forget_question();
            let deadline = self.now + self.rules.change_deadline;
            self.state.phase = Phase::Changing { to, deadline };
            self.actions.push(match to {
                Standing::Paused => Action::Pause,
                Standing::Running => Action::Resume,
            });
        }
    }

    fn changed(&mut self, to: Standing, commands: Option<u64>) {
        if !matches!(self.state.phase, Phase::Changing { to: wanted, .. } if wanted == to) {
            return;
        }
        let lease = &mut self.state.lease;
        lease.touch(self.now);
        lease.commands = commands.unwrap_or(lease.commands);
        lease.mark_saved(self.now);
        self.actions.push(Action::SaveLease);
        self.stand(to);
    }

    fn change_failed(&mut self) {
        if let Phase::Changing { to, .. } = self.state.phase {
            self.stand(match to {
                Standing::Paused => Standing::Running,
                Standing::Running => Standing::Paused,
            });
        }
    }

    /// Somebody paused or resumed the machine behind our back, or a change of ours was late.
    fn found(&mut self, standing: Standing) {
        match (&self.state.phase, standing) {
            (Phase::Running, Standing::Paused) | (Phase::Paused, Standing::Running) => {
                self.forget_question();
                self.stand(standing);
            }
            _ => {}
        }
    }

    fn stand(&mut self, standing: Standing) {
        self.state.phase = match standing {
            Standing::Paused => Phase::Paused,
            Standing::Running => {
                // While it was paused, nobody could expect an answer.
                self.state.lease.heard();
                self.state.lease.look_soon(self.now, self.rules);
                Phase::Running
            }
        };
    }

    /// What is due by now, whatever the event was.
    fn deadlines(&mut self) {
        let now = self.now;
        match &self.state.phase {
            Phase::Creating { deadline } if now >= *deadline => {
                let reason = "it was not ready before its deadline".to_owned();
                self.end(Cause::CreateFailed { reason });
            }
            Phase::Creating { .. } | Phase::Ended { .. } => {}
            Phase::Ending(_) => self.ending_deadlines(),
            _ if self.state.lease.ends_at.is_some_and(|end| now >= end) => {
                self.end(Cause::LifetimeExpired);
            }
            Phase::Changing { deadline, .. } if now >= *deadline => self.change_failed(),
            Phase::Changing { .. } => {}
            Phase::Running => self.look_deadlines(),
            // A paused runner cannot be asked; what it had running is still running.
            Phase::Paused if self.state.lease.commands == 0 && self.state.lease.is_due(now) => {
                self.end(Cause::IdleExpired);
            }
            Phase::Paused => {}
        }
        let alive =
            matches!(self.state.phase, Phase::Running | Phase::Changing { .. } | Phase::Paused);
        if alive && self.state.lease.take_save(now, self.rules) {
            self.actions.push(Action::SaveLease);
        }
    }
}
