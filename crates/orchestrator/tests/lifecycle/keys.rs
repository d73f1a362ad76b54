//! One key, one sandbox, whatever crosses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandbank_orchestrator::{OrchestratorError, SandboxState};

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
