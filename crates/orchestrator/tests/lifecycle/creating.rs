//! Create or reconnect.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sandbank_engine::{Control, Engine, EngineError, NetworkMode};
use sandbank_orchestrator::{OrchestratorError, SandboxState, Settings};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, output, request, settings};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_callers_with_one_key_get_one_sandbox() {
    let world = World::new(settings()).await;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let daemon = world.daemon();
        callers.spawn(async move { daemon.create(request("chat:1")).await.unwrap() });
    }
    let answers = callers.join_all().await;
    let first = &answers[0].id;
    assert!(answers.iter().all(|answer| &answer.id == first));
    assert_eq!(answers.iter().filter(|answer| answer.created).count(), 1);
    assert_eq!(world.engine.creates.load(Ordering::SeqCst), 1);
    assert_eq!(world.daemon().list().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn different_keys_get_different_sandboxes_in_a_bounded_queue() {
    let world = World::new(settings()).await;
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..12 {
        let daemon = world.daemon();
        callers.spawn(async move {
            daemon.create(request(&format!("chat:{number}"))).await.unwrap().id
        });
    }
    let mut ids = callers.join_all().await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12);
    assert_eq!(world.engine.ids().len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_sandbox_runs_commands_with_its_environment() {
    let world = World::new(settings()).await;
    let mut request = request("chat:1");
    request.env.insert("COLOUR".into(), "blue".into());
    let created = world.try_create(request).await.unwrap();
    assert!(created.created);
    world.start_script(&created.id, "c1", "echo $COLOUR; pwd").await;
    let attached = world.attach(&created.id).await.unwrap();
    let (text, _) = output(&attached, "c1", 0).await;
    assert!(text.starts_with("blue\n"), "{text:?}");
    let info = world.info(&created.id).await;
    assert_eq!((info.state, info.engine.as_str()), (SandboxState::Running, "process"));
    assert!(info.busy, "somebody is attached");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_changes_the_idle_time_and_nothing_else() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let mut again = request(" chat:1 ");
    again.idle_ttl = Some(Duration::from_secs(77));
    again.network = NetworkMode::Default;
    again.limits.pids = 3;
    let answer = world.try_create(again).await.unwrap();
    assert_eq!((answer.id, answer.created), (id.clone(), false));
    let info = world.info(&id).await;
    assert_eq!(info.idle_ttl_ms, 77_000);
    assert_eq!((info.network, info.limits.pids), (NetworkMode::None, 64));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_who_waited_for_a_failed_create_hears_why() {
    let world = World::new(settings()).await;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let daemon = world.daemon();
        let mut request = request("chat:1");
        request.image = "missing".parse().unwrap();
        callers.spawn(async move { daemon.create(request).await.unwrap_err() });
    }
    for error in callers.join_all().await {
        assert_eq!(error.code(), "image_not_found", "{error}");
    }
    eventually("nothing is left of it", SOON, || async {
        (world.daemon().list().await.is_empty() && world.engine.ids().is_empty()).then_some(())
    })
    .await
    .unwrap();
    world.create("chat:1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_engine_refuses_to_be_without_is_refused_by_its_name() {
    let world = World::new(settings()).await;
    let mut request = request("chat:1");
    request.limits.disk_bytes = Some(1 << 20);
    let error = world.try_create(request).await.unwrap_err();
    let OrchestratorError::Engine(engine) = &error else { panic!("{error}") };
    let quota = Control::DiskQuota;
    assert!(
        matches!(&**engine, EngineError::ControlUnavailable { control, .. } if *control == quota)
    );
    assert!(world.engine.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn controls_that_the_engine_accepts_to_be_without_hinder_no_create() {
    let world = World::new(settings()).await;
    let can = world.engine.capabilities();
    assert!(!can.memory_limit && !can.cpu_limit && !can.pids_limit);
    assert!(world.try_create(request("chat:1")).await.unwrap().created);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_past_its_deadline_fails_and_leaves_nothing() {
    let deadline = Duration::from_millis(300);
    let world = World::new(Settings { create_deadline: deadline, ..settings() }).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let error = world.try_create(request("chat:1")).await.unwrap_err();
    assert!(matches!(error, OrchestratorError::CreateTimedOut(after) if after == deadline));
    assert!(error.retryable());
    drop(gate);
    eventually("the half-made machine is gone", SOON, || async {
        world.engine.ids().is_empty().then_some(())
    })
    .await
    .unwrap();
    world.create("chat:1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_of_a_create_begins_with_its_turn() {
    let create_deadline = Duration::from_secs(3);
    let one_at_once = Settings { create_deadline, concurrent_creates: Some(1), ..settings() };
    let world = World::new(one_at_once).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let (daemon, other) = (world.daemon(), world.daemon());
    let first = tokio::spawn(async move { daemon.create(request("chat:1")).await });
    eventually("the first create to be under way", SOON, || async {
        (world.engine.ids().len() == 1).then_some(())
    })
    .await
    .unwrap();
    let second = tokio::spawn(async move { other.create(request("chat:2")).await });
    // All of its time the second has waited for the first.
    assert!(matches!(first.await.unwrap(), Err(OrchestratorError::CreateTimedOut(_))));
    drop(gate);
    assert!(second.await.unwrap().unwrap().created);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_a_whole_sandbox() {
    let world = World::new(settings()).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let daemon = world.daemon();
    let caller = tokio::spawn(async move { daemon.create(request("chat:1")).await });
    eventually("the create to be under way", SOON, || async {
        (world.engine.ids().len() == 1).then_some(())
    })
    .await
    .unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    drop(gate);
    let id = world.engine.ids()[0].clone();
    world.reaches(&id, SandboxState::Running).await;
    let again = world.try_create(request("chat:1")).await.unwrap();
    assert_eq!((again.id, again.created), (id, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_made_while_its_image_changes_is_not_handed_out() {
    let world = World::new(settings()).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let creating = |image: &str| {
        let (daemon, mut asked) = (world.daemon(), request(image));
        asked.image = image.parse().unwrap();
        tokio::spawn(async move { daemon.create(asked).await })
    };
    let (changed, other) = (creating("changed"), creating("other"));
    eventually("both to be made", SOON, || async {
        (world.engine.creates.load(Ordering::SeqCst) == 2).then_some(())
    })
    .await
    .unwrap();
    // Nobody knows which of the two images the machine is of.
    let (name, place) = ("changed".parse().unwrap(), std::path::PathBuf::from("/x"));
    let failed = world
        .run(|daemon| async move {
            daemon.images(None).unwrap().import(&name, &place, &|_| (), &place).await
        })
        .await;
    assert!(failed.is_err(), "this engine has no images to change");
    drop(gate);
    let refused = changed.await.unwrap().unwrap_err();
    assert!(matches!(refused, OrchestratorError::Untested(_)), "{refused}");
    let made = other.await.unwrap().unwrap().id;
    eventually("the machine of it to go", SOON, || async {
        (world.engine.ids() == [made.clone()]).then_some(())
    })
    .await
    .unwrap();
}
