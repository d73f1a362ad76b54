//! Work of a fixed size for `make instructions`, which counts what `counted_decide` executes.

use super::*;
use crate::Settings;

const REQUESTS: Millis = 1_000;

/// A request comes and goes, and time passes.
#[inline(never)]
fn counted_decide(mut state: State, rules: &Rules) -> (State, usize) {
    let mut actions = 0;
    for now in 1..=REQUESTS {
        for event in [Event::Opened, Event::Closed, Event::Tick] {
            let (next, wanted) = decide(state, event, now, rules);
            state = next;
            actions += wanted.len();
        }
    }
    (state, actions)
}

#[test]
fn a_sandbox_that_is_used_lives_through_the_counted_work() {
    let rules = Rules::from(&Settings::default());
    let state = State::creating(10_000, Lease::new(10 * REQUESTS, None, 0));
    let (state, _) = decide(state, Event::Created, 0, &rules);
    let (state, _) = counted_decide(state, &rules);
    assert_eq!(state.visible(), crate::SandboxState::Running);
    assert_eq!(state.lease.open, 0);
}
