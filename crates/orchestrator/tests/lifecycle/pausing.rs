//! Pause and resume.

use std::time::Duration;

use sandbank_orchestrator::{SandboxState, Settings};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, output, request, settings};

async fn pause(world: &World, id: &sandbank_engine::SandboxId) {
    let id = id.clone();
    world.run(|daemon| async move { daemon.pause(&id).await.unwrap() }).await;
}

async fn resume(world: &World, id: &sandbank_engine::SandboxId) {
    let id = id.clone();
    world.run(|daemon| async move { daemon.resume(&id).await.unwrap() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_command_goes_on_where_it_stood() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.start_script(&id, "c1", "for n in 1 2 3; do echo $n; sleep 0.2; done").await;
    pause(&world, &id).await;
    pause(&world, &id).await;
    let info = world.info(&id).await;
    assert_eq!((info.state, info.busy), (SandboxState::Paused, true));
    assert_eq!(world.attach(&id).await.err().unwrap().code(), "sandbox_paused");
    let (stats, asked) = (world.daemon(), id.clone());
    assert!(stats.stats(&asked).await.unwrap().runner.is_none());
    resume(&world, &id).await;
    let attached = world.attach(&id).await.unwrap();
    assert_eq!(output(&attached, "c1", 0).await.0, "1\n2\n3\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_for_a_paused_key_resumes_it() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    pause(&world, &id).await;
    let again = world.try_create(request("chat:1")).await.unwrap();
    assert_eq!((again.id, again.created), (id.clone(), false));
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_stays_paused_over_a_restart_and_can_be_stopped() {
    let mut world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    pause(&world, &id).await;
    world.restart_after_kill().await;
    assert_eq!(world.info(&id).await.state, SandboxState::Paused);
    assert!(world.stop(&id).await.unwrap());
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_paused_sandbox_expires_and_a_busy_one_does_not() {
    let ttl = Duration::from_secs(3);
    let world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let (idle, busy) = (world.create("chat:1").await, world.create("chat:2").await);
    world.start_script(&busy, "c1", "sleep 60").await;
    pause(&world, &idle).await;
    pause(&world, &busy).await;
    world.ended(&idle).await;
    let quiet_until = std::time::Instant::now() + 2 * ttl;
    eventually("two TTLs to pass", SOON, || async {
        (std::time::Instant::now() > quiet_until).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(world.info(&busy).await.state, SandboxState::Paused);
}
