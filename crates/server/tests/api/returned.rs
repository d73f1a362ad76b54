//! Sessions of a workspace that was away when their daemon began, or when their time was over.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sandbank_test_support::wait_for;
use sandbank_workspace::{Held, LocalPlace, Mode, Place, PlaceError, PlaceHealth, Retries};
use tokio::sync::watch;

use crate::far::{Far, PATIENCE, terminal};
use crate::world::World;

#[tokio::test]
async fn sessions_of_a_workspace_that_was_away_at_the_start_are_found_when_it_is_back() {
    let mut far = Far::start().await;
    let earlier = far.world("86400").await;
    drop(terminal(&earlier).await);
    earlier.shutdown.drain();
    earlier.server.await.unwrap().unwrap();
    assert!(far.has_terminal().await);
    far.carry(false).await;
    // Nobody ever asks this daemon for a session.
    let _world = far.world("0").await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}

#[tokio::test]
async fn a_session_whose_time_is_over_while_its_workspace_is_away_ends_when_it_is_back() {
    let mut far = Far::start().await;
    let world = far.world("1").await;
    let pty = terminal(&world).await;
    assert!(far.has_terminal().await);
    drop(pty);
    far.carry(false).await;
    far.was_tried().await;
    far.carry(true).await;
    far.loses_its_terminal().await;
}

/// A directory here whose callers can be made to wait.
struct Slow {
    local: Arc<LocalPlace>,
    state: watch::Sender<Answers>,
    /// Who came while it was not to be had, and in which state.
    came: Mutex<Vec<Answers>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    AtOnce,
    /// With the next state whoever waits is refused.
    Refusal,
    /// With the next state whoever waits is served.
    Later,
}

impl Slow {
    fn came(&self, state: Answers) -> usize {
        self.came.lock().unwrap().iter().filter(|came| **came == state).count()
    }
}

#[async_trait]
impl Place for Slow {
    async fn client_after(&self, broken: u64) -> Result<Held, PlaceError> {
        let mut state = self.state.subscribe();
        let came = *state.borrow_and_update();
        if came != Answers::AtOnce {
            self.came.lock().unwrap().push(came);
            state.wait_for(|now| *now != came).await.unwrap();
        }
        match came {
            Answers::Refusal => Err(PlaceError::Unreachable("it is away".to_owned())),
            Answers::AtOnce | Answers::Later => self.local.client_after(broken).await,
        }
    }

    async fn health(&self) -> PlaceHealth {
        self.local.health().await
    }

    async fn root(&self) -> Result<String, PlaceError> {
        self.local.root().await
    }

    fn mode(&self) -> Mode {
        self.local.mode()
    }

    fn retries(&self) -> Retries {
        self.local.retries()
    }
}

#[tokio::test]
async fn however_many_sessions_are_lost_sight_of_one_looks_for_them() {
    let far = Far::start().await;
    let (local, state) = (far.local.clone(), watch::Sender::new(Answers::AtOnce));
    let place = Arc::new(Slow { local, state, came: Mutex::default() });
    let settings = [
        ("workspace.mode", "local"),
        ("workspace.root", "/nowhere"),
        ("workspace.pty_shell_command", "bash,--norc,--noprofile"),
        ("workspace.pty_window_seconds", "0"),
    ];
    let world = World::with_workspace(&settings, place.clone()).await;
    let terminals = [terminal(&world).await, terminal(&world).await, terminal(&world).await];
    place.state.send_replace(Answers::Refusal);
    drop(terminals);
    let all = || async { place.came(Answers::Refusal) == 3 };
    wait_for("each is to be ended", PATIENCE, all).await.unwrap();
    place.state.send_replace(Answers::Later);
    let any = || async { place.came(Answers::Later) > 0 };
    wait_for("somebody looks for them", PATIENCE, any).await.unwrap();
    // Whoever else looks has its turn before this is answered: there is one thread.
    assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
    assert_eq!(place.came(Answers::Later), 1);
    place.state.send_replace(Answers::AtOnce);
    far.loses_its_terminal().await;
}
