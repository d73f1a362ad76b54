//! How long a sandbox may live: idle, and at most. Being busy is being active.

use super::{Millis, Rules};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) idle_ttl: Millis,
    /// The end of the absolute lifetime.
    pub(crate) ends_at: Option<Millis>,
    /// The last moment at which somebody is known to have used it.
    pub(crate) last_active: Millis,
    /// Attached callers and port connections.
    pub(crate) open: u32,
    /// Running commands, as last seen.
    pub(crate) commands: u64,
    /// Ended commands, as last seen; none until the runner was first asked.
    pub(crate) ended: Option<u64>,
    pub(crate) look: Look,
    /// `last_active` as the store has it, and when it was written.
    pub(crate) saved: Millis,
    pub(crate) saved_at: Millis,
}

/// When the runner is asked how busy it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) next: Option<Millis>,
    pub(crate) interval: Millis,
    /// Serial and deadline of the question that is out.
    pub(crate) asked: Option<(u64, Millis)>,
    pub(crate) serial: u64,
    /// Questions in a row that were not answered.
    pub(crate) unanswered: u32,
    /// When the first of them was given up.
    pub(crate) mute_since: Option<Millis>,
    /// The engine was away when it was last asked; `next` says when it is asked again.
    pub(crate) away: bool,
    /// Stop it if the answer is that it is idle.
    pub(crate) evict: bool,
}

impl Look {
    /// After a question without an answer, the next one has a time of its own.
    pub(crate) fn is_put_off(&self) -> bool {
        self.unanswered > 0 || self.away
    }
}

impl Lease {
    pub(crate) fn new(idle_ttl: Millis, ends_at: Option<Millis>, now: Millis) -> Self {
        Self {
            idle_ttl,
            ends_at,
            last_active: now,
            open: 0,
            commands: 0,
            ended: None,
            look: Look::default(),
            saved: now,
            saved_at: now,
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.open > 0 || self.commands > 0
    }

    /// Not known to be idle: something was last seen running, or nobody has looked yet.
    pub(crate) fn may_have_commands(&self) -> bool {
        self.commands > 0 || self.ended.is_none()
    }

    /// The runner gave a sign of life.
    pub(crate) fn heard(&mut self) {
        (self.look.unanswered, self.look.mute_since) = (0, None);
    }

    pub(crate) fn idle_deadline(&self) -> Millis {
        self.last_active.saturating_add(self.idle_ttl)
    }

    /// A held sandbox never expires; commands are asked about before one does.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        self.open == 0 && now >= self.idle_deadline()
    }

    pub(crate) fn touch(&mut self, now: Millis) {
        self.last_active = self.last_active.max(now);
    }

    /// The last active moment, which is now while somebody holds it.
    pub(crate) fn active_until(&self, now: Millis) -> Millis {
        if self.open > 0 { self.last_active.max(now) } else { self.last_active }
    }

    pub(crate) fn look_soon(&mut self, now: Millis, rules: &Rules) {
        self.look.interval = rules.first_look;
        let soon = now + rules.first_look;
        self.look.next = Some(self.look.next.map_or(soon, |next| next.min(soon)));
    }

    pub(crate) fn last_look_interval(&self, rules: &Rules) -> Millis {
        // A busy sandbox must be seen busy several times per TTL.
        rules.last_look.min(self.idle_ttl / 3).max(1)
    }

    fn save_interval(&self, rules: &Rules) -> Millis {
        rules.save_interval.min(self.idle_ttl / 10).max(1)
    }

    /// When the store has to learn of the latest activity; none when it knows.
    pub(crate) fn save_due_at(&self, rules: &Rules) -> Option<Millis> {
        let news = self.open > 0 || self.last_active > self.saved;
        news.then(|| self.saved_at + self.save_interval(rules))
    }

    /// Says whether the store is to be told now, and assumes that it will be.
    pub(crate) fn take_save(&mut self, now: Millis, rules: &Rules) -> bool {
        let due = self.save_due_at(rules).is_some_and(|at| now >= at);
        if due {
            self.mark_saved(now);
        }
        due
    }

    pub(crate) fn mark_saved(&mut self, now: Millis) {
        self.saved = self.active_until(now);
        self.saved_at = now;
    }
}
