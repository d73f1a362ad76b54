//! When a sandbox's task has to look at the clock again.

use super::{Millis, Phase, Rules, State};

/// The next moment at which [`super::Event::Tick`] changes something; none when only an event can.
pub(crate) fn next_wakeup(state: &State, rules: &Rules) -> Option<Millis> {
    let lease = &state.lease;
    let alive = [lease.ends_at, lease.save_due_at(rules)];
    let idle = (lease.open == 0).then(|| lease.idle_deadline());
    match &state.phase {
        Phase::Creating { deadline } => Some(*deadline),
        Phase::Ending(ending) => Some(ending.until),
        Phase::Ended { .. } => None,
        Phase::Changing { deadline, .. } => earliest(alive, [Some(*deadline), None]),
        Phase::Paused => earliest(alive, [idle.filter(|_| lease.commands == 0), None]),
        Phase::Running => match lease.look.asked {
            Some((_, deadline)) => earliest(alive, [Some(deadline), None]),
            None => earliest(alive, [lease.look.next, idle.filter(|_| !lease.look.is_put_off())]),
        },
    }
}

fn earliest(a: [Option<Millis>; 2], b: [Option<Millis>; 2]) -> Option<Millis> {
    a.into_iter().chain(b).flatten().min()
}
