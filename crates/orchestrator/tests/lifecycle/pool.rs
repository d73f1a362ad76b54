//! Ready machines: handed out once, replaced, and never seen by anybody when they are of no use.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sandbank_engine::{NetworkMode, SandboxId};
use sandbank_orchestrator::containment::SelfTest;
use sandbank_orchestrator::{
    AcquireSource, CreateRequest, OrchestratorError, PoolEntry, PoolStatus, Recipe, SandboxState,
    Settings,
};
use sandbank_test_support::eventually;

use crate::world::{SOON, World, output, request, settings};

fn recipe(image: &str) -> Recipe {
    let CreateRequest { network, limits, .. } = request("any");
    Recipe { engine: None, image: image.parse().unwrap(), network, limits }
}

fn pool_of(entries: &[(&str, usize)]) -> Settings {
    let entry = |(image, size): &(&str, usize)| PoolEntry { recipe: recipe(image), size: *size };
    Settings { pool: entries.iter().map(entry).collect(), ..settings() }
}

async fn with_pool(size: usize) -> World {
    let world = World::new(pool_of(&[("host", size)])).await;
    full(&world).await;
    world
}

fn status(world: &World, image: &str) -> PoolStatus {
    let pool = world.daemon().pool();
    pool.into_iter().find(|status| status.image.as_str() == image).unwrap()
}

async fn full(world: &World) {
    eventually("the pool to be full", SOON, || async {
        let pool = world.daemon().pool();
        pool.iter().all(|status| status.ready == status.target).then_some(())
    })
    .await
    .unwrap();
}

/// Machines that are no sandbox's.
async fn spare(world: &World) -> Vec<SandboxId> {
    let listed: HashSet<_> = world.daemon().list().await.into_iter().map(|info| info.id).collect();
    world.engine.ids().into_iter().filter(|id| !listed.contains(id)).collect()
}

async fn says(world: &World, id: &SandboxId, command: &str, script: &str) -> String {
    world.start_script(id, command, script).await;
    output(&world.attach(id).await.unwrap(), command, 0).await.0
}

async fn events_of(world: &World, kind: &str) -> usize {
    let (stored, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    stored.iter().filter(|event| event.kind == kind).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_creates_at_once_get_fifty_different_machines() {
    let world = with_pool(20).await;
    let ready: HashSet<_> = world.engine.ids().into_iter().collect();
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..50 {
        let daemon = world.daemon();
        callers.spawn(async move { daemon.create(request(&format!("chat:{number}"))).await });
    }
    let made: Vec<_> = callers.join_all().await.into_iter().map(Result::unwrap).collect();
    let ids: HashSet<_> = made.iter().map(|made| made.id.clone()).collect();
    assert_eq!(ids.len(), 50);
    assert!(made.iter().all(|made| made.created));
    assert!(ready.is_subset(&ids), "each of those that were ready has found its caller");
    let pooled = made.iter().filter(|made| made.source == AcquireSource::Pool).count() as u64;
    let told = status(&world, "host");
    assert_eq!((told.claimed_total, told.claimed_total + told.missed_total), (pooled, 50));
    let totals = world.daemon().status();
    assert_eq!((totals.created_from_pool, totals.created_cold), (pooled, 50 - pooled));
    assert_eq!(totals.sandboxes, [("running", 50)].into());
    for made in &made {
        let own = says(&world, &made.id, "c1", "echo $SANDBANK_TEST_MACHINE").await;
        assert_eq!(own.trim(), made.id.as_str());
    }
    full(&world).await;
    assert_eq!(world.engine.ids().len(), 70, "and nothing else is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_a_sandbox_like_any_other_and_is_replaced() {
    let world = with_pool(2).await;
    let before = spare(&world).await;
    assert!(world.daemon().list().await.is_empty(), "a member is no sandbox");
    let made = world.try_create(request("chat:1")).await.unwrap();
    assert_eq!((made.created, made.source), (true, AcquireSource::Pool));
    assert!(before.contains(&made.id));
    let again = world.try_create(request("chat:1")).await.unwrap();
    assert_eq!((again.id, again.created), (made.id.clone(), false));
    let info = world.info(&made.id).await;
    assert_eq!((info.state, info.key.as_str()), (SandboxState::Running, "chat:1"));
    assert_eq!(says(&world, &made.id, "c1", "echo hi").await, "hi\n");
    full(&world).await;
    assert_eq!(world.engine.creates.load(Ordering::SeqCst), 3);
    assert!(world.stop(&made.id).await.unwrap());
    assert_eq!(events_of(&world, "runner.restarted").await, 0);
    assert_eq!(spare(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_asks_for_exactly_this_is_served_from_the_pool() {
    let world = with_pool(1).await;
    let mut others = [request("a"), request("b"), request("c")];
    others[0].network = NetworkMode::Default;
    others[1].limits.pids += 1;
    others[2].image = "python".parse().unwrap();
    for other in others {
        let made = world.try_create(other).await.unwrap();
        assert_eq!(made.source, AcquireSource::Cold);
    }
    let told = status(&world, "host");
    assert_eq!((told.claimed_total, told.missed_total, told.ready), (0, 0, 1));
    assert_eq!(world.try_create(request("d")).await.unwrap().source, AcquireSource::Pool);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_environment_is_set_and_survives_the_daemon() {
    let mut world = with_pool(1).await;
    let mut asked = request("chat:1");
    asked.env.insert("COLOUR".into(), "deep blue".into());
    asked.env.insert("LANG".into(), "C".into());
    let made = world.try_create(asked).await.unwrap();
    assert_eq!(made.source, AcquireSource::Pool);
    let script = "echo \"$COLOUR,$LANG,$USER\"";
    assert_eq!(says(&world, &made.id, "c1", script).await, "deep blue,C,user\n");
    world.restart_after_kill().await;
    assert_eq!(says(&world, &made.id, "c2", script).await, "deep blue,C,user\n");
    let other = world.create("chat:2").await;
    assert_eq!(says(&world, &other, "c1", "echo \"$COLOUR\"").await, "\n", "it is nobody else's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_is_replaced_and_never_handed_out() {
    let world = with_pool(2).await;
    for round in 0..6 {
        full(&world).await;
        for id in spare(&world).await {
            kill_process(world.engine.pid(&id), Signal::KILL).unwrap();
        }
        // At once: whether the death was noticed by then is nobody's business.
        let id = world.create(&format!("chat:{round}")).await;
        assert_eq!(says(&world, &id, "c1", "echo alive").await, "alive\n");
        assert_eq!(world.info(&id).await.state, SandboxState::Running);
    }
    full(&world).await;
    assert_eq!(spare(&world).await.len(), 2, "nothing is left of the dead");
    assert!(events_of(&world, "pool.member_lost").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_answer_is_exchanged_for_a_new_machine() {
    let world = with_pool(1).await;
    let mute = spare(&world).await.remove(0);
    kill_process(world.engine.pid(&mute), Signal::STOP).unwrap();
    let mut asked = request("chat:1");
    asked.env.insert("COLOUR".into(), "blue".into());
    let made = world.try_create(asked).await.unwrap();
    assert_eq!((made.created, made.source), (true, AcquireSource::Cold));
    assert_eq!(says(&world, &made.id, "c1", "echo $COLOUR").await, "blue\n");
    assert_eq!(events_of(&world, "runner.restarted").await, 0);
    full(&world).await;
    assert_eq!(world.engine.ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_leaves_members_alone_and_notices_those_that_vanish() {
    let world = with_pool(2).await;
    let members = spare(&world).await;
    let orphan = world.engine.make_orphan();
    eventually("a sweep", SOON, || async { (!world.engine.ids().contains(&orphan)).then_some(()) })
        .await
        .unwrap();
    let left = spare(&world).await;
    assert!(members.iter().all(|id| left.contains(id)), "{members:?} {left:?}");
    world.engine.remove_behind_the_back(&members[0]);
    eventually("another member", SOON, || async {
        let now = spare(&world).await;
        (now.len() == 2 && !now.contains(&members[0])).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_destroys_the_pool_and_keeps_the_sandboxes() {
    let world = with_pool(5).await;
    let id = world.create("chat:1").await;
    world.run(|daemon| async move { daemon.shutdown().await }).await;
    assert_eq!(world.engine.ids(), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_waits_for_the_member_that_is_being_made() {
    let world = World::new(pool_of(&[("host", 2)])).await;
    full(&world).await;
    let gate = world.engine.create_gate.acquire_many(1000).await.unwrap();
    let id = world.create("chat:1").await;
    eventually("a member to be under way", SOON, || async {
        (status(&world, "host").being_made == 1 && world.engine.ids().len() == 3).then_some(())
    })
    .await
    .unwrap();
    world.spawn(|daemon| async move { daemon.shutdown().await });
    eventually("the ready one to go", SOON, || async {
        (world.engine.ids().len() == 2).then_some(())
    })
    .await
    .unwrap();
    drop(gate);
    eventually("the other one to go", SOON, || async {
        (world.engine.ids() == std::slice::from_ref(&id)).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_left_of_its_pool_is_destroyed_at_the_next_start() {
    let mut world = with_pool(3).await;
    let id = world.create("chat:1").await;
    full(&world).await;
    let old = spare(&world).await;
    assert_eq!(old.len(), 3);
    world.restart_after_kill().await;
    assert!(world.engine.ids().iter().all(|id| !old.contains(id)));
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
    full(&world).await;
    assert_eq!(world.engine.ids().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_handed_out_or_made_while_creates_are_withheld() {
    let world = with_pool(2).await;
    world
        .daemon()
        .withhold_creates("process", OrchestratorError::Untested("the test says so".to_owned()));
    let refused = world.try_create(request("chat:1")).await.unwrap_err();
    assert!(matches!(refused, OrchestratorError::Untested(_)), "{refused}");
    assert_eq!(status(&world, "host").ready, 2);
    let made = world.engine.creates.load(Ordering::SeqCst);
    kill_process(world.engine.pid(&spare(&world).await[0]), Signal::KILL).unwrap();
    let data = tempfile::tempdir().unwrap();
    let place = data.path().to_owned();
    eventually("its death to be noticed", SOON, || async {
        (status(&world, "host").ready == 1).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(world.engine.creates.load(Ordering::SeqCst), made);
    let tested = world
        .run(|daemon| async move { daemon.catch_up("process", SelfTest::default(), &place).await })
        .await;
    assert!(tested.is_some());
    full(&world).await;
    assert_eq!(world.create("chat:1").await, world.daemon().list().await[0].id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_image_has_no_members_of_the_old_one() {
    let world = World::new(pool_of(&[("python", 2), ("host", 1)])).await;
    full(&world).await;
    for change in ["import", "remove"] {
        let old: HashSet<_> = spare(&world).await.into_iter().collect();
        let failed = world
            .run(|daemon| async move {
                let (name, path) = ("python".parse().unwrap(), std::path::PathBuf::from("/x"));
                let images = daemon.images(None).unwrap();
                match change {
                    "import" => images.import(&name, &path, &|_| (), &path).await.err(),
                    _ => images.remove(&name).await.err(),
                }
            })
            .await;
        assert!(failed.is_some(), "this engine has no images to change");
        full(&world).await;
        let new: HashSet<_> = spare(&world).await.into_iter().collect();
        let kept: Vec<_> = old.intersection(&new).collect();
        assert_eq!((kept.len(), new.len()), (1, 3), "{change}: only the other image's stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_not_there_is_told_once_and_hinders_no_other() {
    let world = World::new(pool_of(&[("missing", 2), ("host", 2)])).await;
    eventually("the other one to be full", SOON, || async {
        (status(&world, "host").ready == 2).then_some(())
    })
    .await
    .unwrap();
    eventually("several tries", SOON, || async {
        (world.engine.creates.load(Ordering::SeqCst) >= 5).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(events_of(&world, "pool.refill_failed").await, 1);
    assert_eq!(status(&world, "missing").ready, 0);
    let mut asked = request("chat:1");
    asked.image = "missing".parse().unwrap();
    assert_eq!(world.try_create(asked).await.unwrap_err().code(), "image_not_found");
}

/// Whatever the daemon was doing when it was killed, afterwards every machine is a sandbox's or
/// a member.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_killed_at_any_moment_loses_count_of_no_machine() {
    let mut world = World::new(pool_of(&[("host", 3)])).await;
    for round in 0..10u64 {
        for number in 0..4 {
            world.spawn(move |daemon| async move {
                let mut asked = request(&format!("chat:{number}"));
                asked.env.insert("KEY".into(), format!("{number}"));
                let created = daemon.create(asked).await?;
                if (round + number).is_multiple_of(3) {
                    daemon.stop(&created.id, "the test").await?;
                }
                Ok::<_, OrchestratorError>(())
            });
        }
        // Not a wait for something: the moment of the crash is what varies.
        tokio::time::sleep(Duration::from_millis(round * 4)).await;
        world.restart_after_kill().await;
    }
    for number in 0..4 {
        let mut asked = request(&format!("chat:{number}"));
        asked.env.insert("KEY".into(), format!("{number}"));
        let id = world.try_create(asked).await.unwrap().id;
        let own = says(&world, &id, "last", "echo $KEY").await;
        assert_eq!(own, format!("{number}\n"), "whoever finds a sandbox finds its environment");
    }
    full(&world).await;
    eventually("engine and daemon to agree", SOON, || async {
        (world.engine.ids().len() == 4 + 3).then_some(())
    })
    .await
    .unwrap();
}
