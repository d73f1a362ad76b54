//! The limit of sandboxes.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sandbank_orchestrator::{Cause, OrchestratorError, SandboxState, Settings};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, request, settings};

async fn crowded(max_sandboxes: usize, evict_idle: bool) -> World {
    World::new(Settings { max_sandboxes, evict_idle, ..settings() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_a_new_key_is_refused_with_advice() {
    let world = crowded(2, false).await;
    let first = world.create("chat:1").await;
    world.create("chat:2").await;
    let error = world.try_create(request("chat:3")).await.unwrap_err();
    let OrchestratorError::AtLimit { max, retry_after } = &error else { panic!("{error}") };
    assert_eq!(*max, 2);
    assert!((Duration::from_secs(1)..=Duration::from_secs(60)).contains(retry_after));
    assert!(error.retryable());
    assert!(!world.try_create(request("chat:1")).await.unwrap().created, "old keys still work");
    world.stop(&first).await.unwrap();
    world.create("chat:3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_recently_used_idle_sandbox_is_evicted() {
    let world = crowded(2, true).await;
    let (old, new) = (world.create("chat:1").await, world.create("chat:2").await);
    drop(world.attach(&old).await.unwrap());
    let third = world.create("chat:3").await;
    assert_eq!(world.info(&new).await.state, SandboxState::Gone, "least recently used");
    let states = [&old, &third].map(|id| world.info(id));
    for info in states {
        assert_eq!(info.await.state, SandboxState::Running);
    }
    let cause = world.run(|daemon| async move { daemon.post_mortem(&new).await.unwrap().cause });
    assert_eq!(cause.await, Cause::Evicted);
    assert_eq!(world.engine.ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_sandbox_is_never_evicted() {
    let world = crowded(2, true).await;
    let (running, held) = (world.create("chat:1").await, world.create("chat:2").await);
    world.start_script(&running, "long", "sleep 60").await;
    let attached = world.attach(&held).await.unwrap();
    let error = world.try_create(request("chat:3")).await.unwrap_err();
    assert_eq!(error.code(), "at_limit");
    drop(attached);
    eventually("it to be idle", SOON, || async { (!world.info(&held).await.busy).then_some(()) })
        .await
        .unwrap();
    world.create("chat:3").await;
    assert_eq!(world.info(&running).await.state, SandboxState::Running);
    assert_eq!(world.info(&held).await.state, SandboxState::Gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_newcomers_never_exceed_the_limit() {
    let world = crowded(3, true).await;
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let daemon = world.daemon();
        callers.spawn(async move { daemon.create(request(&format!("chat:{number}"))).await });
    }
    let watcher = async {
        loop {
            assert!(world.engine.ids().len() <= 3, "more machines than allowed");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let answers = tokio::select! {
        answers = callers.join_all() => answers,
        () = watcher => unreachable!("it watches for ever"),
    };
    for answer in answers {
        if let Err(error) = answer {
            assert_eq!(error.code(), "at_limit", "{error}");
        }
    }
    assert!(world.daemon().list().await.len() <= 3);
}

/// Each mute runner takes seconds to be given up, so asking all of them in turn takes longer than
/// anybody waits.
#[tokio::test(flavor = "multi_thread")]
async fn mute_idle_sandboxes_use_up_no_more_than_the_patience_of_a_newcomer() {
    let create_deadline = Duration::from_secs(5);
    let max_sandboxes = 12;
    let crowd = Settings { max_sandboxes, evict_idle: true, create_deadline, ..settings() };
    let world = World::new(crowd).await;
    for number in 0..max_sandboxes {
        let id = world.create(&format!("chat:{number}")).await;
        kill_process(world.engine.pid(&id), Signal::STOP).unwrap();
    }
    let answer = tokio::time::timeout(SOON, world.try_create(request("one more"))).await;
    let error = answer.expect("the newcomer is answered").unwrap_err();
    assert_eq!(error.code(), "at_limit", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_long_as_creates_are_withheld_nobody_is_evicted_and_old_keys_work() {
    let world = crowded(1, true).await;
    let old = world.create("chat:1").await;
    world
        .daemon()
        .withhold_creates("process", OrchestratorError::Untested("there was no canary".to_owned()));
    let error = world.try_create(request("chat:2")).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("containment_untested", true));
    assert_eq!(world.info(&old).await.state, SandboxState::Running);
    assert_eq!(world.create("chat:1").await, old);
}
