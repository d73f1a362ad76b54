//! Stopping, and operations that cross it.

use std::sync::atomic::Ordering;

use sandbank_orchestrator::{Cause, SandboxState, Settings};
use sandbank_test_support::eventually;
use tokio::time::{Duration, timeout};

use crate::world::{SOON, World, bash, output, request, settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_sandbox_leaves_a_post_mortem() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let attached = world.attach(&id).await.unwrap();
    attached.start(&bash("c1", "echo last words; exit 3")).await.unwrap();
    output(&attached, "c1", 0).await;
    attached.start(&bash("c2", "sleep 60")).await.unwrap();
    assert!(world.stop(&id).await.unwrap());
    assert!(world.engine.ids().is_empty());
    let gone = id.clone();
    let seen = world.run(|daemon| async move { daemon.post_mortem(&gone).await.unwrap() }).await;
    assert_eq!(seen.cause, Cause::Stopped { by: "the test".into() });
    assert_eq!(seen.last_output, "last words\n");
    let codes: Vec<_> =
        seen.last_commands.iter().map(|c| c.ending().and_then(|e| e.exit_code())).collect();
    assert_eq!(codes, [Some(3), None], "the second one was lost");
    assert!(seen.peaks.memory_peak_bytes > 0);
    assert!(seen.ended_at_ms >= seen.created_at_ms);
    let error = world.attach(&id).await.err().unwrap();
    assert_eq!(error.code(), "sandbox_gone");
    assert_eq!(world.info(&id).await.state, SandboxState::Gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_what_is_not_there_is_no_error() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let (first, second) = tokio::join!(world.stop(&id), world.stop(&id));
    assert!(first.unwrap() || second.unwrap());
    assert!(!world.stop(&id).await.unwrap());
    assert!(!world.stop(&sandbank_engine::SandboxId::random()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_their_sandbox_is_stopped() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let attached = world.attach(&id).await.unwrap();
    attached.start(&bash("c1", "echo up; sleep 60")).await.unwrap();
    let command = "c1".parse().unwrap();
    let mut stream = attached.output(&command, 0, true).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    let (stopped, rest) = tokio::join!(world.stop(&id), async {
        let drain = async { while let Ok(Some(_)) = stream.next().await {} };
        timeout(SOON, drain).await
    });
    stopped.unwrap();
    rest.expect("the stream ends");
    assert!(matches!(attached.ended().await, Cause::Stopped { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_and_creating_may_cross() {
    let world = World::new(settings()).await;
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..60 {
        let daemon = world.daemon();
        callers.spawn(async move {
            let work = async {
                let created = daemon.create(request("chat:1")).await;
                match created {
                    Ok(created) if number % 3 == 0 => {
                        daemon.stop(&created.id, "the test").await.unwrap();
                    }
                    Ok(created) => match daemon.attach(&created.id).await {
                        Ok(attached) => drop(attached.start(&bash("x", "true")).await),
                        Err(error) => assert_eq!(error.code(), "sandbox_gone", "{error}"),
                    },
                    Err(error) => assert_eq!(error.code(), "sandbox_gone", "{error}"),
                }
            };
            timeout(SOON, work).await.expect("nobody hangs");
        });
    }
    callers.join_all().await;
    let listed = world.daemon().list().await;
    assert!(listed.len() <= 1, "{listed:?}");
    let id = world.create("chat:1").await;
    world.stop(&id).await.unwrap();
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_will_not_go_is_tried_again() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.engine.failing_destroys.store(2, Ordering::SeqCst);
    assert!(world.stop(&id).await.unwrap());
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_takes_too_long_says_so_and_goes_on() {
    let world =
        World::new(Settings { stop_deadline: Duration::from_millis(200), ..settings() }).await;
    let id = world.create("chat:1").await;
    world.engine.failing_destroys.store(4, Ordering::SeqCst);
    let error = world.stop(&id).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("still_stopping", true));
    let replaced = world.try_create(request("chat:1")).await.unwrap();
    assert!(replaced.created && replaced.id != id, "its key is free");
    eventually("the sweep to finish it", SOON, || async {
        (!world.engine.ids().contains(&id)).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_during_create_wins() {
    let world = World::new(settings()).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let daemon = world.daemon();
    let caller = tokio::spawn(async move { daemon.create(request("chat:1")).await });
    let id = eventually("the create to be under way", SOON, || async {
        world.engine.ids().first().cloned()
    })
    .await
    .unwrap();
    assert!(world.stop(&id).await.unwrap());
    assert_eq!(caller.await.unwrap().unwrap_err().code(), "sandbox_gone");
    drop(gate);
    assert!(world.engine.ids().is_empty());
}
