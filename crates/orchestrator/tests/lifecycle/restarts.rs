//! The daemon goes and comes back; the sandboxes stay.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sandbank_orchestrator::{OrchestratorError, SandboxState, Settings};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, bash, output, request, settings};

const STEPS: &str = "for n in 1 2 3 4 5 6 7 8; do echo step $n; sleep 0.25; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_finds_its_sandboxes_and_their_commands() {
    let mut world = World::new(settings()).await;
    let mut wanted = request("chat:1");
    (wanted.ports, wanted.idle_ttl) = (vec![3000], Some(Duration::from_secs(123)));
    let id = world.try_create(wanted.clone()).await.unwrap().id;
    let port_of = id.clone();
    let published = world
        .run(|daemon| async move { daemon.publish(&port_of, 3000).await.unwrap().unwrap() })
        .await;
    world.start_script(&id, "steps", STEPS).await;
    let before = world.info(&id).await;

    world.restart_after_kill().await;

    let after = world.info(&id).await;
    assert_eq!(after.state, SandboxState::Running);
    assert_eq!((&after.key, after.created_at_ms), (&before.key, before.created_at_ms));
    assert_eq!((after.idle_ttl_ms, after.ends_at_ms), (123_000, before.ends_at_ms));
    assert_eq!(after.published, [published], "the same host port");
    eventually("the command to be seen running", SOON, || async {
        (world.info(&id).await.commands_running == 1).then_some(())
    })
    .await
    .unwrap();
    let attached = world.attach(&id).await.unwrap();
    let (text, _) = output(&attached, "steps", 0).await;
    assert_eq!(text.lines().count(), 8, "{text}");
    let again = attached.start(&bash("steps", STEPS)).await.unwrap();
    assert!(again.attached, "it is known, and not run again");
    drop(attached);
    let reused = world.try_create(wanted).await.unwrap();
    assert_eq!((reused.id, reused.created), (id, false));
    assert_eq!(world.engine.creates.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_are_kept_over_a_restart() {
    let ttl = Duration::from_secs(30);
    let mut world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let id = world.create("chat:1").await;
    let before = world.info(&id).await.expires_at_ms.unwrap();
    world.restart().await;
    world.restart_after_kill().await;
    let after = world.info(&id).await.expires_at_ms.unwrap();
    assert!(before.abs_diff(after) < 1000, "{before} became {after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expired_while_the_daemon_was_down_goes_unless_it_is_busy() {
    let ttl = Duration::from_secs(2);
    let mut world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let (idle, busy) = (world.create("chat:1").await, world.create("chat:2").await);
    world.start_script(&busy, "long", "sleep 60").await;
    world.kill();
    let back_at = std::time::Instant::now() + 2 * ttl;
    eventually("the TTL to pass", SOON, || async {
        (std::time::Instant::now() > back_at).then_some(())
    })
    .await
    .unwrap();
    world.start().await;
    world.ended(&idle).await;
    assert_eq!(world.info(&busy).await.state, SandboxState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_half_made_at_the_crash_is_destroyed_and_its_key_is_free() {
    let mut world = World::new(settings()).await;
    let engine = world.engine.clone();
    let gate = engine.create_gate.acquire_many(1000).await.unwrap();
    world.spawn(|daemon| async move { daemon.create(request("chat:1")).await });
    let id = eventually("the create to be under way", SOON, || async {
        world.engine.ids().first().cloned()
    })
    .await
    .unwrap();
    world.kill();
    drop(gate);
    world.start().await;
    let info = world.ended(&id).await;
    assert_eq!(info.state, SandboxState::Failed);
    assert!(world.engine.ids().is_empty());
    let again = world.try_create(request("chat:1")).await.unwrap();
    assert!(again.created);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_interrupted_by_a_crash_is_finished() {
    let mut world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.engine.failing_destroys.store(usize::MAX, Ordering::SeqCst);
    let stopping = id.clone();
    world.spawn(|daemon| async move { daemon.stop(&stopping, "the test").await });
    world.reaches(&id, SandboxState::Stopping).await;
    eventually("a destroy to have failed", SOON, || async {
        (world.engine.failing_destroys.load(Ordering::SeqCst) < usize::MAX).then_some(())
    })
    .await
    .unwrap();
    world.kill();
    world.engine.failing_destroys.store(0, Ordering::SeqCst);
    world.start().await;
    let info = world.ended(&id).await;
    assert!(info.reason.unwrap().contains("stopped by the test"));
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_died_while_the_daemon_was_down_is_told_apart() {
    let mut world = World::new(settings()).await;
    let (dead, lost, kept) =
        (world.create("chat:1").await, world.create("chat:2").await, world.create("chat:3").await);
    world.kill();
    kill_process(world.engine.pid(&dead), Signal::KILL).unwrap();
    world.engine.remove_behind_the_back(&lost);
    let orphan = world.engine.make_orphan();
    world.start().await;
    let reasons = [world.ended(&dead).await.reason, world.ended(&lost).await.reason];
    assert!(reasons[0].as_ref().unwrap().contains("runner died"), "{reasons:?}");
    assert!(reasons[1].as_ref().unwrap().contains("not there"), "{reasons:?}");
    assert_eq!(world.info(&kept).await.state, SandboxState::Running);
    assert_eq!(world.engine.ids(), [kept]);
    assert!(!world.engine.ids().contains(&orphan));
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_leaves_sandboxes_running_and_refuses_newcomers() {
    let mut world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.run(|daemon| async move { daemon.shutdown().await }).await;
    let error = world.try_create(request("chat:2")).await.unwrap_err();
    assert_eq!((error.code(), error.retryable()), ("shutting_down", true));
    assert_eq!(world.attach(&id).await.err().unwrap().code(), "shutting_down");
    assert_eq!(world.engine.ids(), std::slice::from_ref(&id));
    world.restart_after_kill().await;
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
}

/// Whatever the daemon was doing when it was killed, afterwards engine and store agree, and
/// every key can be used.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_at_any_moment_leaves_nothing_half_done() {
    let mut world = World::new(settings()).await;
    for round in 0..12u64 {
        for number in 0..4 {
            world.spawn(move |daemon| async move {
                let created = daemon.create(request(&format!("chat:{number}"))).await?;
                if (round + number).is_multiple_of(3) {
                    daemon.stop(&created.id, "the test").await?;
                }
                Ok::<_, OrchestratorError>(())
            });
        }
        // Not a wait for something: the moment of the crash is what varies.
        tokio::time::sleep(Duration::from_millis(round * 3)).await;
        world.restart_after_kill().await;
    }
    eventually("engine and store to agree", SOON, || async {
        let mut listed: Vec<_> = world.daemon().list().await;
        listed.retain(|info| info.state == SandboxState::Running);
        let mut ids: Vec<_> = listed.into_iter().map(|info| info.id).collect();
        let mut machines = world.engine.ids();
        ids.sort();
        machines.sort();
        (ids == machines).then_some(())
    })
    .await
    .unwrap();
    for number in 0..4 {
        let id = world.create(&format!("chat:{number}")).await;
        world.attach(&id).await.unwrap().stats().await.unwrap();
        assert!(world.stop(&id).await.unwrap());
    }
    assert!(world.engine.ids().is_empty());
}
