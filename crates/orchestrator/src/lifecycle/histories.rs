//! What holds over a whole life, judged by an observer who sees only events and actions.

use proptest::prelude::*;

use super::properties::{history, newborn, rules, settle};
use super::*;
use crate::Cause;

/// What somebody outside knows for sure.
#[derive(Debug, Default)]
struct Observer {
    open: u32,
    /// A command was started and nobody has spoken about commands since.
    surely_running: bool,
    watched: u32,
    released: u32,
    collected: u32,
    destroy_attempts: u32,
    record_attempts: u32,
    destroyed: bool,
}

impl Observer {
    /// Before the event is decided, while it is alive.
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Opened => self.open += 1,
            Event::Closed => self.open = self.open.saturating_sub(1),
            Event::CommandStarted => self.surely_running = true,
            Event::Observed(_) | Event::RunnerRestarted => self.surely_running = false,
            Event::Changed { commands: Some(_), .. } => self.surely_running = false,
            _ => {}
        }
    }

    fn is_surely_busy(&self) -> bool {
        self.open > 0 || self.surely_running
    }

    fn see(&mut self, action: &Action) {
        let over = self.record_attempts > 0;
        match action {
            Action::Watch => self.watched += 1,
            Action::Release => self.released += 1,
            Action::Collect => {
                assert_eq!((self.released, self.destroy_attempts), (1, 0), "{self:?}");
                self.collected += 1;
            }
            Action::Destroy { attempt } => {
                assert_eq!(*attempt, self.destroy_attempts + 1, "one attempt after the other");
                assert!(self.released == 1 && !over, "{self:?}");
                self.destroy_attempts += 1;
            }
            Action::Record { attempt } => {
                assert_eq!(*attempt, self.record_attempts + 1, "one attempt after the other");
                assert!(self.destroyed, "a row is closed only when its machine is gone");
                self.record_attempts += 1;
            }
            Action::Observe { .. } | Action::SaveLease | Action::Pause | Action::Resume => {
                assert_eq!(self.released, 0, "nothing is asked of what is on its way out");
            }
        }
        let most = self.watched.max(self.released).max(self.collected);
        assert!(most <= 1, "each of these happens once: {self:?}");
    }
}

fn is_alive(state: &State) -> bool {
    matches!(state.phase, Phase::Running | Phase::Changing { .. } | Phase::Paused)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_life_has_one_beginning_one_way_out_and_every_step_in_its_order(history in history()) {
        let (mut now, mut state, mut observer) = (0, newborn(0), Observer::default());
        for (event, later) in history {
            now += later;
            let attempt_before = observer.destroy_attempts;
            if let Event::Destroyed { attempt } = event {
                let awaited = matches!(&state.phase, Phase::Ending(Ending {
                    step: Step::Destroy, waiting: false, .. }));
                observer.destroyed |= awaited && attempt == attempt_before;
            }
            let (next, mut actions) = decide(state, event, now, &rules());
            state = settle(next, now, &mut actions);
            actions.iter().for_each(|action| observer.see(action));
            prop_assert_eq!(state.is_ended(), next_wakeup(&state, &rules()).is_none()
                && state.cause().is_some(), "what is not over has a deadline");
            prop_assert_eq!(state.cause().is_some(), observer.released == 1);
        }
    }

    #[test]
    fn whoever_is_surely_busy_neither_expires_nor_makes_room(history in history()) {
        let (mut now, mut state, mut observer) = (0, newborn(0), Observer::default());
        state.lease.ends_at = None;
        for (event, later) in history {
            now += later;
            if is_alive(&state) {
                observer.hear(&event);
            }
            let before = state.clone();
            state = decide(state, event.clone(), now, &rules()).0;
            let ended = before.cause().is_none().then(|| state.cause()).flatten();
            if let Some(Cause::IdleExpired | Cause::Evicted) = ended {
                prop_assert!(!observer.is_surely_busy(), "{:?} by {:?}", before, event);
            }
        }
    }

    /// Also while it is quiet: somebody must look at the clock again.
    #[test]
    fn a_sandbox_that_nobody_holds_is_looked_at_again(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        state.lease.ends_at = None;
        for (event, later) in history {
            now += later;
            state = settle(decide(state, event, now, &rules()).0, now, &mut Vec::new());
            let frozen = state.phase == Phase::Paused && state.lease.commands > 0;
            let held = state.lease.open > 0 || frozen;
            if !held && !state.is_ended() {
                prop_assert!(next_wakeup(&state, &rules()).is_some_and(|at| at > now), "{:?}", state);
            }
        }
    }
}
