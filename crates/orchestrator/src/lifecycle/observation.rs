//! Looking at what runs: after a use, while commands run, and before anything expires.

use super::decide::Turn;
use super::{Action, Observed, Phase};
use crate::Cause;

impl Turn<'_> {
    pub(super) fn look_now(&mut self) {
        let look = &self.state.lease.look;
        let unsure = self.state.lease.commands > 0 || look.next.is_some();
        if unsure && look.asked.is_none() && self.state.phase == Phase::Running {
            self.ask();
        }
    }

    pub(super) fn evict(&mut self) {
        if self.state.lease.is_busy() {
            return;
        }
        match self.state.phase {
            Phase::Paused => self.end(Cause::Evicted),
            Phase::Running => {
                self.state.lease.look.evict = true;
                if self.state.lease.look.asked.is_none() {
                    self.ask();
                }
            }
            _ => {}
        }
    }

    pub(super) fn observed(&mut self, observed: &Observed) {
        let lease = &mut self.state.lease;
        if lease.look.asked.is_none_or(|(serial, _)| serial != observed.serial) {
            return;
        }
        lease.look.asked = None;
        lease.heard();
        // Whatever ended since the last look was running until some moment before this one.
        let something_ended = lease.ended.is_some_and(|before| before != observed.ended);
        if observed.commands > 0 || something_ended {
            lease.touch(self.now);
        }
        if let Some(at) = observed.last_ended {
            lease.touch(at.min(self.now));
        }
        lease.commands = observed.commands;
        lease.ended = Some(observed.ended);
        lease.look.next = (observed.commands > 0).then(|| {
            let interval = lease.look.interval.max(self.rules.first_look);
            lease.look.interval = (interval * 2).min(lease.last_look_interval(self.rules));
            self.now + lease.look.interval
        });
        let evict = std::mem::take(&mut lease.look.evict);
        if lease.is_busy() {
            return;
        }
        if evict {
            self.end(Cause::Evicted);
        } else if lease.is_due(self.now) {
            self.end(Cause::IdleExpired);
        }
    }

    pub(super) fn observe_failed(&mut self, serial: u64) {
        if self.state.lease.look.asked.is_some_and(|(asked, _)| asked == serial) {
            self.unanswered();
        }
    }

    /// Nothing is known of the runner, so nothing is held against it, and silence begins anew.
    pub(super) fn engine_away(&mut self, serial: u64) {
        if self.state.lease.look.asked.is_none_or(|(asked, _)| asked != serial) {
            return;
        }
        self.forget_question();
        let lease = &mut self.state.lease;
        lease.heard();
        lease.look.away = true;
        lease.look.next = Some(self.now + self.rules.last_look);
    }

    pub(super) fn look_deadlines(&mut self) {
        let (now, look) = (self.now, &self.state.lease.look);
        match look.asked {
            Some((_, deadline)) if now >= deadline => self.unanswered(),
            Some(_) => {}
            None => {
                let look_due = look.next.is_some_and(|next| now >= next);
                let may_expire = !look.is_put_off() && self.state.lease.is_due(now);
                if look_due || may_expire {
                    self.ask();
                }
            }
        }
    }

    /// Questions that are out make no sense any more.
    pub(super) fn forget_question(&mut self) {
        let look = &mut self.state.lease.look;
        (look.asked, look.evict) = (None, false);
    }

    fn ask(&mut self) {
        let lease = &mut self.state.lease;
        lease.look.serial += 1;
        (lease.look.next, lease.look.away) = (None, false);
        lease.look.asked = Some((lease.look.serial, self.now + self.rules.observe_deadline));
        let history = lease.ended.is_none();
        self.actions.push(Action::Observe { serial: lease.look.serial, history });
    }

    fn unanswered(&mut self) {
        self.forget_question();
        let lease = &mut self.state.lease;
        lease.look.unanswered += 1;
        let mute_since = *lease.look.mute_since.get_or_insert(self.now);
        let asked_enough = lease.look.unanswered >= self.rules.unanswered;
        let silent_enough =
            !lease.may_have_commands() || self.now - mute_since >= self.rules.busy_silence;
        if asked_enough && silent_enough && lease.is_due(self.now) {
            let reason = mute_reason(lease.commands);
            self.end(Cause::Lost { reason });
        } else {
            lease.look.next = Some(self.now + self.rules.retry_after(lease.look.unanswered));
        }
    }
}

/// A runner that does not answer cannot be called idle.
fn mute_reason(commands: u64) -> String {
    match commands {
        0 => "its runner did not answer when its idle time was over".to_owned(),
        _ => "its runner did not answer any more, with commands last seen running".to_owned(),
    }
}
