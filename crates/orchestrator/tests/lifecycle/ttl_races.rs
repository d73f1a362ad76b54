//! Renewal, expiry, commands and deletes that cross each other, in a thousand seeded
//! interleavings: a sandbox is always renewed or gone, and none outlives its time.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use sandbank_engine::SandboxId;
use sandbank_orchestrator::{Cause, Orchestrator, SandboxState, Settings};
use sandbank_test_support::{Seeded, eventually};

use crate::world::{SOON, World, bash, request, settings};

const INTERLEAVINGS: u64 = 1000;
const AT_ONCE: usize = 40;
const TTL_MS: u64 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Renew,
    Exec,
    Delete,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_interleavings_of_renewal_expiry_commands_and_deletes() {
    let seed = Seeded::announce("ttl races");
    let world = World::new(Settings {
        default_idle_ttl: Duration::from_millis(TTL_MS),
        max_sandboxes: 1000,
        keep_post_mortems: 10_000,
        ..settings()
    })
    .await;
    let races = (0..INTERLEAVINGS).map(|number| {
        let race = race(number, seed.branch(number));
        world.run(|daemon| race.run(daemon))
    });
    let made: Vec<Vec<SandboxId>> =
        futures_util::stream::iter(races).buffer_unordered(AT_ONCE).collect().await;
    eventually("everything to expire", SOON, || async {
        (world.daemon().list().await.is_empty() && world.engine.ids().is_empty()).then_some(())
    })
    .await
    .unwrap();
    for id in made.iter().flatten() {
        let id = id.clone();
        let cause = world.run(|daemon| async move { daemon.post_mortem(&id).await.unwrap().cause });
        let cause = cause.await;
        assert!(matches!(cause, Cause::IdleExpired | Cause::Stopped { .. }), "{cause:?}");
    }
    let renewed = made.iter().filter(|ids| ids.len() == 1).count();
    println!("ttl races: {renewed} kept one sandbox, {} made more", made.len() - renewed);
    assert!(renewed > 0 && renewed < made.len(), "the moves never crossed the expiry");
}

/// Who does what to one key, and how long after its sandbox was made.
struct Race {
    key: String,
    moves: Vec<(Duration, Move)>,
}

fn race(number: u64, mut random: Seeded) -> Race {
    let moves = (0..2 + random.below(4)).map(|_| {
        // Most of them around the moment of expiry.
        let at = random.millis(TTL_MS / 2, TTL_MS * 2);
        let what = match random.below(5) {
            0 | 1 => Move::Renew,
            2 | 3 => Move::Exec,
            _ => Move::Delete,
        };
        (at, what)
    });
    Race { moves: moves.collect(), key: format!("race {number}") }
}

impl Race {
    /// Every sandbox that the key has had.
    async fn run(self, daemon: Orchestrator) -> Vec<SandboxId> {
        let first = daemon.create(request(&self.key)).await.unwrap().id;
        let deleted = self.moves.iter().any(|(_, what)| *what == Move::Delete);
        let movers = self.moves.iter().map(|(at, what)| {
            let (daemon, first) = (daemon.clone(), first.clone());
            let key = self.key.clone();
            async move {
                tokio::time::sleep(*at).await;
                make(*what, &daemon, &key, &first, deleted).await
            }
        });
        let mut ids: Vec<_> = futures_util::future::join_all(movers).await.concat();
        ids.push(first);
        ids.sort();
        ids.dedup();
        ids
    }
}

async fn make(
    what: Move,
    daemon: &Orchestrator,
    key: &str,
    first: &SandboxId,
    deleted: bool,
) -> Vec<SandboxId> {
    match what {
        Move::Renew => {
            let id = daemon.create(request(key)).await.unwrap().id;
            let told = Instant::now();
            let state = daemon.inspect(&id).await.unwrap().state;
            // Whoever is told that it is there finds it there for its TTL, unless somebody else
            // deletes it.
            let expired = told.elapsed() >= Duration::from_millis(TTL_MS);
            let there = state == SandboxState::Running;
            assert!(deleted || expired || there, "{key}: renewed, and {state:?}");
            vec![id]
        }
        Move::Exec => {
            match daemon.attach(first).await {
                Ok(attached) => {
                    let started = attached.start(&bash("c", "true")).await;
                    // Held, it does not expire.
                    assert!(deleted || started.is_ok(), "{key}: {:?}", started.err());
                }
                Err(error) => assert_eq!(error.code(), "sandbox_gone", "{error}"),
            }
            Vec::new()
        }
        Move::Delete => {
            daemon.stop(first, "the race").await.unwrap();
            let state = daemon.inspect(first).await.unwrap().state;
            assert!(state.is_over(), "{key}: deleted, and {state:?}");
            Vec::new()
        }
    }
}
