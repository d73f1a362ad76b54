//! The decisions one by one.

use super::*;
use crate::{Cause, SandboxState, Settings};

const TTL: Millis = 10_000;

/// A sandbox and its clock.
struct Life {
    state: State,
    now: Millis,
    actions: Vec<Action>,
}

impl Life {
    fn running() -> Self {
        let lease = Lease::new(TTL, None, 0);
        let mut life = Self { state: State::creating(1_000, lease), now: 0, actions: Vec::new() };
        life.event(Event::Created);
        life
    }

    fn event(&mut self, event: Event) -> &[Action] {
        let rules = Rules::from(&Settings::default());
        let (state, actions) = decide(self.state.clone(), event, self.now, &rules);
        (self.state, self.actions) = (state, actions);
        &self.actions
    }

    fn at(&mut self, now: Millis) -> &mut Self {
        self.now = now;
        self
    }

    /// Answers the question that is out.
    fn runner_says(&mut self, commands: u64, ended: u64) {
        let (serial, _) = self.state.lease.look.asked.expect("a question is out");
        self.event(Event::Observed(Observed { serial, commands, ended, last_ended: None }));
    }

    fn visible(&self) -> SandboxState {
        self.state.visible()
    }
}

#[test]
fn whoever_waits_in_a_queue_that_moves_has_its_time_anew_and_whoever_is_made_only_once() {
    let rules = Rules::from(&Settings::default());
    let lease = Lease::new(TTL, None, 0);
    let mut life = Life { state: State::creating(1_000, lease), now: 0, actions: Vec::new() };
    life.at(900).event(Event::TurnNearer);
    let patience = rules.turn_patience + rules.create_deadline;
    life.at(900 + patience - 1).event(Event::Tick);
    assert_eq!(life.visible(), SandboxState::Creating);
    life.event(Event::TurnCame);
    let made_by = life.now + rules.create_deadline;
    life.at(made_by - 1).event(Event::Tick);
    assert_eq!(life.visible(), SandboxState::Creating);
    life.at(made_by).event(Event::Tick);
    assert!(matches!(life.state.cause(), Some(Cause::CreateFailed { .. })), "{:?}", life.state);
}

#[test]
fn an_idle_sandbox_is_asked_before_it_expires() {
    let mut life = Life::running();
    assert!(life.at(TTL - 1).event(Event::Tick).is_empty());
    let asked = life.at(TTL).event(Event::Tick);
    assert_eq!(asked, [Action::Observe { serial: 1, history: false }]);
    assert_eq!(life.visible(), SandboxState::Running);
    life.runner_says(0, 0);
    assert_eq!(life.state.cause(), Some(&Cause::IdleExpired));
    assert_eq!(life.actions, [Action::Release, Action::Collect]);
}

#[test]
fn a_running_command_moves_the_deadline() {
    let mut life = Life::running();
    life.at(TTL).event(Event::Tick);
    life.runner_says(1, 0);
    assert_eq!(life.state.lease.idle_deadline(), 2 * TTL);
    assert!(life.state.lease.is_busy());
}

#[test]
fn what_ended_between_two_looks_counts_until_the_second() {
    let mut life = Life::running();
    life.state.lease.ended = None;
    life.event(Event::Opened);
    life.event(Event::Closed);
    life.at(1_000).event(Event::Tick);
    life.runner_says(0, 5);
    assert_eq!(life.state.lease.last_active, 0, "the first look only takes the number");
    life.at(2_000).event(Event::Opened);
    life.event(Event::Closed);
    life.at(3_000).event(Event::Tick);
    life.runner_says(0, 6);
    assert_eq!(life.state.lease.last_active, 3_000);
}

#[test]
fn attaching_while_expiry_is_being_checked_saves_the_sandbox() {
    let mut life = Life::running();
    life.at(TTL).event(Event::Tick);
    life.event(Event::Opened);
    life.runner_says(0, 0);
    assert_eq!(life.visible(), SandboxState::Running);
    life.at(10 * TTL).event(Event::Tick);
    assert_eq!(life.state.cause(), None, "somebody holds it");
}

/// Lets time pass without an answer until it ends; says when that was.
fn unanswered(life: &mut Life) -> Millis {
    let rules = Rules::from(&Settings::default());
    for _ in 0..100 {
        life.event(Event::Tick);
        if life.state.cause().is_some() {
            return life.now;
        }
        life.now = next_wakeup(&life.state, &rules).unwrap();
    }
    panic!("still {:?}", life.state);
}

fn reason(life: &Life) -> &str {
    let Some(Cause::Lost { reason }) = life.state.cause() else { panic!("{:?}", life.state) };
    reason
}

#[test]
fn a_mute_runner_without_commands_is_lost_after_a_few_questions() {
    let mut life = Life::running();
    assert!(unanswered(life.at(TTL)) < 3 * TTL);
    assert_eq!(reason(&life), "its runner did not answer when its idle time was over");
    assert_eq!(life.visible(), SandboxState::Failed);
}

#[test]
fn a_mute_runner_with_commands_is_lost_only_after_a_long_silence() {
    let silence = Rules::from(&Settings::default()).busy_silence;
    let mut life = Life::running();
    life.at(TTL).event(Event::Tick);
    life.runner_says(1, 0);
    let ended = unanswered(&mut life);
    assert!((TTL + silence..TTL + 2 * silence).contains(&ended), "{ended}");
    assert!(reason(&life).ends_with("with commands last seen running"));
}

#[test]
fn while_its_engine_is_away_a_sandbox_is_asked_again_and_again_and_nothing_is_counted() {
    let rules = Rules::from(&Settings::default());
    let mut life = Life::running();
    life.event(Event::CommandStarted);
    life.at(TTL).event(Event::Tick);
    life.at(2 * TTL).event(Event::Tick);
    assert_eq!(life.state.lease.look.unanswered, 1, "a mute runner is counted");
    let gone = life.now;
    while life.now < gone + 10 * rules.busy_silence {
        let wake = next_wakeup(&life.state, &rules).unwrap();
        assert!(wake > life.now, "it is not asked all the time");
        life.at(wake).event(Event::Tick);
        let (serial, _) = life.state.lease.look.asked.expect("it is asked");
        life.event(Event::EngineAway { serial });
        let look = &life.state.lease.look;
        assert_eq!((life.state.cause(), look.unanswered, look.mute_since), (None, 0, None));
    }
    let back = life.now;
    assert!(unanswered(&mut life) >= back + rules.busy_silence, "its silence begins anew");
}

#[test]
fn an_engine_that_is_away_keeps_an_idle_sandbox_from_being_evicted_and_no_longer() {
    let mut life = Life::running();
    life.event(Event::Evict);
    let (serial, _) = life.state.lease.look.asked.expect("it is asked");
    life.event(Event::EngineAway { serial });
    assert!(life.state.cause().is_none() && !life.state.lease.look.evict);
    life.at(TTL).event(Event::Tick);
    life.runner_says(0, 0);
    assert_eq!(life.state.cause(), Some(&Cause::IdleExpired), "the engine is back");
}

#[test]
fn a_runner_that_nobody_has_asked_yet_is_not_taken_for_idle() {
    let silence = Rules::from(&Settings::default()).busy_silence;
    let mut life = Life::running();
    life.state.lease.ended = None;
    assert!(unanswered(life.at(TTL)) >= TTL + silence);
}

#[test]
fn an_answer_ends_the_silence_of_a_runner() {
    let mut life = Life::running();
    life.event(Event::CommandStarted);
    life.at(TTL).event(Event::Tick);
    life.at(2 * TTL).event(Event::Tick);
    assert_eq!(life.state.lease.look.mute_since, Some(2 * TTL));
    life.at(3 * TTL).event(Event::Tick);
    life.runner_says(1, 0);
    assert_eq!((life.state.lease.look.unanswered, life.state.lease.look.mute_since), (0, None));
}

#[test]
fn eviction_is_refused_when_a_command_turns_out_to_run() {
    let mut life = Life::running();
    life.event(Event::Evict);
    life.runner_says(1, 0);
    assert_eq!(life.state.cause(), None);
    assert!(!life.state.lease.look.evict);
}

#[test]
fn a_lifetime_ends_a_busy_sandbox() {
    let mut life = Life::running();
    life.state.lease.ends_at = Some(5_000);
    life.event(Event::Opened);
    life.at(5_000).event(Event::Tick);
    assert_eq!(life.state.cause(), Some(&Cause::LifetimeExpired));
}

#[test]
fn a_death_shows_as_failed_at_once() {
    let mut life = Life::running();
    life.event(Event::Died { death: sandbank_engine::DeathCause::Signaled { signal: 9 } });
    assert_eq!(life.visible(), SandboxState::Failed);
    life.event(Event::Collected);
    assert_eq!(life.actions, [Action::Destroy { attempt: 1 }]);
    life.event(Event::Destroyed { attempt: 1 });
    life.event(Event::Recorded { attempt: 1 });
    assert!(life.state.is_ended());
}

#[test]
fn a_failed_destroy_is_tried_again_later() {
    let mut life = Life::running();
    life.event(Event::Stop { by: "test".into() });
    life.event(Event::Collected);
    assert!(life.event(Event::DestroyFailed { attempt: 1 }).is_empty());
    assert!(life.at(499).event(Event::Tick).is_empty());
    assert_eq!(life.at(500).event(Event::Tick), [Action::Destroy { attempt: 2 }]);
    life.event(Event::Destroyed { attempt: 1 });
    assert_eq!(life.visible(), SandboxState::Stopping, "an old answer does not count");
    assert_eq!(life.event(Event::Destroyed { attempt: 2 }), [Action::Record { attempt: 1 }]);
}

#[test]
fn a_stop_during_create_goes_straight_to_destroy() {
    let lease = Lease::new(TTL, None, 0);
    let mut life = Life { state: State::creating(1_000, lease), now: 0, actions: Vec::new() };
    life.event(Event::Stop { by: "test".into() });
    assert_eq!(life.actions, [Action::Release, Action::Destroy { attempt: 1 }]);
    life.event(Event::Created);
    assert_eq!(life.visible(), SandboxState::Stopping);
}

#[test]
fn a_paused_sandbox_expires_only_if_it_had_nothing_running() {
    for (commands, expires) in [(0, true), (1, false)] {
        let mut life = Life::running();
        life.event(Event::Pause);
        life.event(Event::Changed { to: Standing::Paused, commands: Some(commands) });
        assert_eq!(life.visible(), SandboxState::Paused);
        life.at(TTL).event(Event::Tick);
        assert_eq!(life.state.cause().is_some(), expires);
    }
}

#[test]
fn a_new_ttl_is_saved_at_once() {
    let mut life = Life::running();
    let actions = life.event(Event::Renewed { idle_ttl: Some(60_000) });
    assert_eq!(actions, [Action::SaveLease]);
    assert!(life.event(Event::Renewed { idle_ttl: None }).is_empty());
}
