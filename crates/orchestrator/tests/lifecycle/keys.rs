//! One key, one sandbox, whatever crosses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandbank_orchestrator::{Cause, OrchestratorError, SandboxState};

use crate::world::{World, request, settings};

const KEYS: usize = 2;
const CALLERS: usize = 6;
const CALLS: usize = 25;

fn key(number: usize) -> String {
    format!("chat:{}", number % KEYS)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_never_names_two_sandboxes_while_callers_create_and_stop() {
    let world = World::new(settings()).await;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let daemon = world.daemon();
        callers.spawn(async move {
            for call in 0..CALLS {
                let made = daemon.create(request(&key(caller + call))).await;
                let Ok(made) = made else { panic!("{:?}", made.err()) };
                if (caller + call) % 3 == 0 {
                    match daemon.stop(&made.id, "the test").await {
                        Ok(_) | Err(OrchestratorError::Gone { .. }) => {}
                        Err(OrchestratorError::NotFound(_)) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        });
    }
    let over = Arc::new(AtomicBool::new(false));
    let (watched, daemon) = (over.clone(), world.daemon());
    let watcher = tokio::spawn(async move {
        while !watched.load(Ordering::SeqCst) {
            let mut live: BTreeMap<String, usize> = BTreeMap::new();
            for info in daemon.list().await {
                if matches!(info.state, SandboxState::Creating | SandboxState::Running) {
                    *live.entry(info.key.to_string()).or_default() += 1;
                }
            }
            assert!(live.values().all(|count| *count == 1), "{live:?}");
            tokio::task::yield_now().await;
        }
    });
    callers.join_all().await;
    over.store(true, Ordering::SeqCst);
    watcher.await.unwrap();
    let made = world.engine.creates.load(Ordering::SeqCst);
    assert!(made > KEYS && made < CALLERS * CALLS, "some were shared, some made anew: {made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_finds_the_living_one_and_then_the_newest_that_ended() {
    let world = World::new(settings()).await;
    let daemon = world.daemon();
    let key = "session:1".parse().unwrap();
    assert_eq!(daemon.find_key(&key).await.unwrap(), None);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let made = daemon.create(request("session:1")).await.unwrap();
        let found = daemon.find_key(&key).await.unwrap().unwrap();
        assert_eq!((&found.id, found.state), (&made.id, SandboxState::Running));
        daemon.stop(&made.id, "the test").await.unwrap();
        let found = daemon.find_key(&key).await.unwrap().unwrap();
        assert_eq!((&found.id, found.state), (&made.id, SandboxState::Gone));
        assert!(matches!(found.cause, Some(Cause::Stopped { .. })), "{found:?}");
        ids.push(made.id);
    }
    daemon.create(request("sessionX")).await.unwrap();
    let living = daemon.create(request("session:2")).await.unwrap().id;
    ids.push(living);
    ids.reverse();
    let of = |limit| {
        let daemon = daemon.clone();
        async move {
            let infos = daemon.with_key_prefix("session:", limit).await.unwrap();
            infos.into_iter().map(|info| info.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(of(10).await, ids, "newest first, living and ended, no other key");
    assert_eq!(of(2).await, ids[..2]);
}
