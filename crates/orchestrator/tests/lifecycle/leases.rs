//! How long sandboxes live.

use std::time::{Duration, Instant};

use sandbank_orchestrator::{Cause, SandboxState, Settings};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, request, settings};

const TTL: Duration = Duration::from_millis(2500);

async fn short_lived() -> World {
    World::new(Settings { default_idle_ttl: TTL, ..settings() }).await
}

async fn cause(world: &World, id: &sandbank_engine::SandboxId) -> Cause {
    let id = id.clone();
    world.run(|daemon| async move { daemon.post_mortem(&id).await.unwrap().cause }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_nobody_uses_expires() {
    let world = short_lived().await;
    let id = world.create("chat:1").await;
    let expires = world.info(&id).await.expires_at_ms.expect("it is idle");
    let info = world.ended(&id).await;
    assert_eq!(info.state, SandboxState::Gone);
    assert_eq!(cause(&world, &id).await, Cause::IdleExpired);
    assert!(info.ends_at_ms.unwrap() >= expires, "not before its time");
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_longer_than_the_ttl_keeps_its_sandbox() {
    let world = short_lived().await;
    let id = world.create("chat:1").await;
    let start = Instant::now();
    world.start_script(&id, "long", "sleep 5; echo done").await;
    let busy = world.info(&id).await;
    assert!(busy.busy && busy.expires_at_ms.is_none() && busy.commands_running == 1, "{busy:?}");
    // Not held while it runs: only the running command keeps the sandbox.
    world.ended(&id).await;
    let lived = start.elapsed();
    assert!(lived >= Duration::from_secs(5) + TTL, "it went after {lived:?}");
    let post_mortem =
        world.run(|daemon| async move { daemon.post_mortem(&id).await.unwrap() }).await;
    assert_eq!(post_mortem.last_output, "done\n");
    assert_eq!(post_mortem.last_commands.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attached_caller_keeps_the_sandbox() {
    let world = short_lived().await;
    let id = world.create("chat:1").await;
    let attached = world.attach(&id).await.unwrap();
    let held_until = Instant::now() + 2 * TTL;
    eventually("two TTLs to pass", SOON, || async {
        attached.stats().await.unwrap();
        (Instant::now() > held_until).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
    drop(attached);
    world.ended(&id).await;
    assert_eq!(cause(&world, &id).await, Cause::IdleExpired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_vanishes_while_attaching_holds_nothing() {
    let world = short_lived().await;
    let id = world.create("chat:1").await;
    for _ in 0..50 {
        let (daemon, id) = (world.daemon(), id.clone());
        let caller = tokio::spawn(async move { daemon.attach(&id).await.map(drop) });
        tokio::task::yield_now().await;
        caller.abort();
    }
    world.ended(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lifetime_ends_even_a_busy_sandbox() {
    let world = short_lived().await;
    let mut request = request("chat:1");
    request.max_lifetime = Some(Duration::from_secs(2));
    let id = world.try_create(request).await.unwrap().id;
    world.start_script(&id, "long", "sleep 60").await;
    let attached = world.attach(&id).await.unwrap();
    assert!(world.info(&id).await.ends_at_ms.is_some());
    assert_eq!(attached.ended().await, Cause::LifetimeExpired);
    world.ended(&id).await;
    assert_eq!(cause(&world, &id).await, Cause::LifetimeExpired);
}

/// Renewals, uses, stops and the expiry itself, at every moment around the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_races_expiry_either_renews_or_makes_anew() {
    let ttl = Duration::from_millis(250);
    let world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let mut racers = tokio::task::JoinSet::new();
    for racer in 0..40u64 {
        let daemon = world.daemon();
        racers.spawn(async move {
            let key = format!("chat:{}", racer % 4);
            for round in 0..10u64 {
                let wait = 200 + (racer * 37 + round * 13) % 100;
                tokio::time::sleep(Duration::from_millis(wait)).await;
                let created = daemon.create(request(&key)).await.unwrap();
                match daemon.attach(&created.id).await {
                    Ok(attached) => drop(attached.stats().await),
                    Err(error) => assert_eq!(error.code(), "sandbox_gone", "{error}"),
                }
                if (racer + round).is_multiple_of(7) {
                    daemon.stop(&created.id, "the race").await.unwrap();
                }
            }
        });
    }
    racers.join_all().await;
    eventually("everything to expire", SOON, || async {
        (world.daemon().list().await.is_empty() && world.engine.ids().is_empty()).then_some(())
    })
    .await
    .unwrap();
}
