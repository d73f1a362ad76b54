//! The way out: collect, destroy, record. Each step is tried until it succeeds, one attempt at a
//! time, so that everything can be deleted and nothing is deleted twice.

use super::decide::Turn;
use super::{Action, Ending, Event, Phase, Step};
use crate::Cause;

impl Turn<'_> {
    /// Leaves life for good. A machine that never ran has nothing to be collected.
    pub(super) fn end(&mut self, cause: Cause) {
        let first = match self.state.phase {
            Phase::Creating { .. } => Step::Destroy,
            _ => Step::Collect,
        };
        self.forget_question();
        self.actions.push(Action::Release);
        let ending = Ending { cause, step: first, attempt: 0, waiting: false, until: self.now };
        self.state.phase = Phase::Ending(ending);
        self.begin(first, 1);
    }

    pub(super) fn ending(&mut self, event: Event) {
        let Phase::Ending(ending) = &self.state.phase else { return };
        if ending.waiting {
            return;
        }
        let current = ending.attempt;
        match (ending.step, event) {
            (Step::Collect, Event::Collected) => self.begin(Step::Destroy, 1),
            (Step::Destroy, Event::Destroyed { attempt }) if attempt == current => {
                self.begin(Step::Record, 1);
            }
            (Step::Record, Event::Recorded { attempt }) if attempt == current => self.finish(),
            (Step::Destroy, Event::DestroyFailed { attempt })
            | (Step::Record, Event::RecordFailed { attempt })
                if attempt == current =>
            {
                self.wait();
            }
            _ => {}
        }
    }

    pub(super) fn ending_deadlines(&mut self) {
        let Phase::Ending(ending) = &self.state.phase else { return };
        let (step, attempt) = (ending.step, ending.attempt);
        if self.now < ending.until {
            return;
        }
        match step {
            Step::Collect => self.begin(Step::Destroy, 1),
            _ if ending.waiting => self.begin(step, attempt + 1),
            _ => self.wait(),
        }
    }

    fn begin(&mut self, step: Step, attempt: u32) {
        let Phase::Ending(ending) = &mut self.state.phase else { return };
        let (action, allowed) = match step {
            Step::Collect => (Action::Collect, self.rules.collect_deadline),
            Step::Destroy => (Action::Destroy { attempt }, self.rules.stop_deadline),
            Step::Record => (Action::Record { attempt }, self.rules.record_deadline),
        };
        (ending.step, ending.attempt, ending.waiting) = (step, attempt, false);
        ending.until = self.now + allowed.max(1);
        self.actions.push(action);
    }

    fn wait(&mut self) {
        let Phase::Ending(ending) = &mut self.state.phase else { return };
        ending.waiting = true;
        ending.until = self.now + self.rules.retry_after(ending.attempt);
    }

    fn finish(&mut self) {
        if let Phase::Ending(ending) = &self.state.phase {
            self.state.phase = Phase::Ended { cause: ending.cause.clone() };
        }
    }
}
