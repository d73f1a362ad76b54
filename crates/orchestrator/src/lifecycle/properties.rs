//! What holds for every sequence of events, sensible or not.

use proptest::prelude::*;
use sandbank_engine::DeathCause;

use super::*;
use crate::{Cause, Settings};

const TTL: Millis = 10_000;

pub(super) fn rules() -> Rules {
    Rules::from(&Settings::default())
}

fn any_standing() -> impl Strategy<Value = Standing> {
    prop_oneof![Just(Standing::Running), Just(Standing::Paused)]
}

fn any_event() -> impl Strategy<Value = Event> {
    let attempt = || 1u32..4;
    let observed = (0u64..12, 0u64..3, 0u64..3, prop::option::of(-5_000i64..50_000)).prop_map(
        |(serial, commands, ended, last_ended)| {
            Event::Observed(Observed { serial, commands, ended, last_ended })
        },
    );
    let ttl = prop::option::of(1i64..40_000);
    prop_oneof![
        4 => Just(Event::Tick),
        1 => Just(Event::TurnNearer),
        1 => Just(Event::TurnCame),
        2 => Just(Event::Created),
        1 => Just(Event::CreateFailed { reason: "no".into() }),
        4 => Just(Event::Opened),
        4 => Just(Event::Closed),
        2 => Just(Event::CommandStarted),
        1 => ttl.prop_map(|idle_ttl| Event::Renewed { idle_ttl }),
        2 => Just(Event::Look),
        1 => Just(Event::RunnerRestarted),
        1 => Just(Event::SaveFailed),
        4 => observed,
        2 => (0u64..12).prop_map(|serial| Event::ObserveFailed { serial }),
        1 => (0u64..12).prop_map(|serial| Event::EngineAway { serial }),
        1 => Just(Event::Stop { by: "test".into() }),
        1 => Just(Event::Evict),
        1 => Just(Event::Died { death: DeathCause::Unknown }),
        1 => Just(Event::Vanished { reason: "test".into() }),
        2 => Just(Event::Pause),
        2 => Just(Event::Resume),
        2 => (any_standing(), prop::option::of(0u64..3))
            .prop_map(|(to, commands)| Event::Changed { to, commands }),
        1 => Just(Event::ChangeFailed),
        1 => any_standing().prop_map(Event::Found),
        2 => Just(Event::Collected),
        2 => attempt().prop_map(|attempt| Event::Destroyed { attempt }),
        2 => attempt().prop_map(|attempt| Event::DestroyFailed { attempt }),
        2 => attempt().prop_map(|attempt| Event::Recorded { attempt }),
        1 => attempt().prop_map(|attempt| Event::RecordFailed { attempt }),
    ]
}

pub(super) fn history() -> impl Strategy<Value = Vec<(Event, Millis)>> {
    prop::collection::vec((any_event(), prop_oneof![0i64..300, 0i64..20_000]), 0..80)
}

pub(super) fn newborn(now: Millis) -> State {
    State::creating(now + 30_000, Lease::new(TTL, Some(now + 600_000), now))
}

/// Whether it must not stay like this forever.
fn is_transitional(state: &State) -> bool {
    matches!(state.phase, Phase::Creating { .. } | Phase::Changing { .. } | Phase::Ending(_))
}

/// Lets time alone act until nothing is due at `now`; more than a few rounds is a busy loop.
pub(super) fn settle(mut state: State, now: Millis, log: &mut Vec<Action>) -> State {
    for _ in 0..6 {
        if next_wakeup(&state, &rules()).is_none_or(|at| at > now) {
            return state;
        }
        let (next, actions) = decide(state, Event::Tick, now, &rules());
        log.extend(actions);
        state = next;
    }
    panic!("time alone keeps {state:?} busy at {now}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_transitional_state_always_has_a_deadline(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        for (event, later) in history {
            now += later;
            state = decide(state, event, now, &rules()).0;
            state = settle(state, now, &mut Vec::new());
            if is_transitional(&state) {
                prop_assert!(next_wakeup(&state, &rules()).is_some(), "{:?}", state);
            }
        }
    }

    #[test]
    fn a_machine_is_destroyed_by_one_attempt_at_a_time(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        let mut in_flight = false;
        for (event, later) in history {
            now += later;
            let before = state.phase.clone();
            let (next, mut actions) = decide(state, event, now, &rules());
            state = settle(next, now, &mut actions);
            if let Phase::Ending(Ending { step: Step::Destroy, waiting, .. }) = before {
                in_flight &= !waiting;
            }
            for action in &actions {
                if let Action::Destroy { .. } = action {
                    let retried = !matches!(&state.phase,
                        Phase::Ending(Ending { step: Step::Destroy, attempt: 1, .. }));
                    prop_assert!(!in_flight || retried, "a second destroy beside the first");
                    in_flight = true;
                }
            }
            let destroyed = matches!(&state.phase,
                Phase::Ended { .. } | Phase::Ending(Ending { step: Step::Record, .. }));
            let began = actions.iter().any(|action| matches!(action, Action::Destroy { .. }));
            prop_assert!(!(destroyed && began), "destroyed again after it was destroyed");
        }
    }

    #[test]
    fn an_ending_is_final_and_keeps_its_cause(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        for (event, later) in history {
            now += later;
            let before = state.clone();
            let (next, actions) = decide(state, event, now, &rules());
            if let Some(cause) = before.cause() {
                prop_assert_eq!(next.cause(), Some(cause));
                prop_assert!(!actions.contains(&Action::Release));
            }
            if before.is_ended() {
                prop_assert_eq!(&next, &before);
                prop_assert!(actions.is_empty());
            }
            state = next;
        }
    }

    #[test]
    fn a_busy_sandbox_is_never_evicted_nor_expires(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        for (event, later) in history {
            now += later;
            let before = state.clone();
            let (next, _) = decide(state, event.clone(), now, &rules());
            if let (None, Some(Cause::IdleExpired | Cause::Evicted)) = (before.cause(), next.cause()) {
                prop_assert!(!next.lease.is_busy(), "{:?} by {:?}", before, event);
            }
            state = next;
        }
    }

    #[test]
    fn a_mute_runner_with_commands_is_given_up_only_after_a_long_silence(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        // The last moment at which the runner cannot have been mute yet.
        let mut heard = 0;
        for (event, later) in history {
            now += later;
            let before = state.clone();
            let vanished = matches!(event, Event::Vanished { .. });
            let (next, _) = decide(state, event, now, &rules());
            if next.cause().is_none() && next.lease.look.unanswered == 0 {
                heard = now;
            }
            let lost = matches!((before.cause(), next.cause()), (None, Some(Cause::Lost { .. })));
            if lost && !vanished && next.lease.commands > 0 {
                prop_assert!(now - heard >= rules().busy_silence, "{:?} at {}", before, now);
            }
            state = next;
        }
    }

    /// However long it lasts, and whatever was the matter before.
    #[test]
    fn a_sandbox_whose_engine_is_away_is_not_given_up(history in history()) {
        let (mut now, mut state) = (0, newborn(0));
        state.lease.ends_at = None;
        for (event, later) in history {
            let next = decide(state.clone(), event, now + later, &rules()).0;
            if next.cause().is_none() {
                (state, now) = (next, now + later);
            }
        }
        prop_assume!(state.phase == Phase::Running);
        // What was asked before the engine went.
        let (serial, mut actions) = (state.lease.look.serial, Vec::new());
        state = decide(state, Event::EngineAway { serial }, now, &rules()).0;
        for _ in 0..1_000 {
            for action in actions {
                if let Action::Observe { serial, .. } = action {
                    state = decide(state, Event::EngineAway { serial }, now, &rules()).0;
                }
            }
            prop_assert_eq!(state.cause(), None);
            let Some(wake) = next_wakeup(&state, &rules()) else { break };
            now = now.max(wake);
            (state, actions) = decide(state, Event::Tick, now, &rules());
        }
    }

    /// However it stands, a stop leads to the end when the effects answer.
    #[test]
    fn everything_can_be_deleted(history in history(), failures in 0u32..5) {
        let (mut now, mut state) = (0, newborn(0));
        for (event, later) in history {
            now += later;
            state = decide(state, event, now, &rules()).0;
        }
        let (next, mut actions) =
            decide(state.clone(), Event::Stop { by: "test".into() }, now, &rules());
        let (mut left, mut next) = (failures, next);
        if actions.is_empty() {
            // It was ending already: the answer to its current step is still to come.
            actions = pending(&next);
        }
        for _ in 0..100 {
            if next.is_ended() {
                return Ok(());
            }
            let event = actions.iter().find_map(|action| answer(action, &mut left));
            if event.is_none() {
                now = next_wakeup(&next, &rules()).expect("a way out has a deadline").max(now);
            }
            (next, actions) = decide(next, event.unwrap_or(Event::Tick), now, &rules());
        }
        prop_assert!(false, "{:?} never ended", next);
    }

    /// Left alone, it ends a TTL after its last activity, with no more than the time for asking,
    /// or for waiting when it may be busy and does not answer.
    #[test]
    fn nothing_idle_is_immortal(history in history(), answers in any::<bool>()) {
        let (mut now, mut state) = (0, newborn(0));
        state.lease.ends_at = None;
        for (event, later) in history {
            let next = decide(state.clone(), event, now + later, &rules()).0;
            if next.cause().is_none() {
                (state, now) = (next, now + later);
            }
        }
        state.lease.open = 0;
        let was_paused_busy = state.lease.commands > 0
            && matches!(state.phase, Phase::Paused | Phase::Changing { .. });
        prop_assume!(!was_paused_busy);
        let last = now.max(state.lease.idle_deadline());
        let patience = if answers { 0 } else { rules().busy_silence };
        // Nobody idles before the machine is there, and its turn may take its time.
        let creating = match state.phase {
            Phase::Creating { .. } => rules().turn_patience + rules().create_deadline,
            _ => 0,
        };
        let limit = last + 2 * state.lease.idle_ttl + patience + creating + 120_000;
        for _ in 0..10_000 {
            if state.cause().is_some() {
                return Ok(());
            }
            let wake = next_wakeup(&state, &rules()).expect("an idle sandbox has a deadline");
            now = now.max(wake);
            prop_assert!(now <= limit, "still {:?} at {}", state, now);
            let (next, actions) = decide(state, Event::Tick, now, &rules());
            state = next;
            for action in actions {
                if let (Action::Observe { serial, .. }, true) = (action, answers) {
                    let ended = state.lease.ended.unwrap_or(7);
                    let idle = Observed { serial, commands: 0, ended, last_ended: None };
                    state = decide(state, Event::Observed(idle), now, &rules()).0;
                }
            }
        }
        prop_assert!(false, "too many wakeups");
    }
}

/// The action whose answer a state is waiting for.
fn pending(state: &State) -> Vec<Action> {
    match &state.phase {
        Phase::Ending(ending) if !ending.waiting => vec![match ending.step {
            Step::Collect => Action::Collect,
            Step::Destroy => Action::Destroy { attempt: ending.attempt },
            Step::Record => Action::Record { attempt: ending.attempt },
        }],
        _ => Vec::new(),
    }
}

fn answer(action: &Action, failures: &mut u32) -> Option<Event> {
    let fails = *failures > 0;
    *failures = failures.saturating_sub(1);
    match action {
        Action::Collect if fails => None,
        Action::Collect => Some(Event::Collected),
        Action::Destroy { attempt } if fails => Some(Event::DestroyFailed { attempt: *attempt }),
        Action::Destroy { attempt } => Some(Event::Destroyed { attempt: *attempt }),
        Action::Record { attempt } if fails => Some(Event::RecordFailed { attempt: *attempt }),
        Action::Record { attempt } => Some(Event::Recorded { attempt: *attempt }),
        _ => None,
    }
}
