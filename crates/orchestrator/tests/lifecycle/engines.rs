//! Several engines under one roof: each sandbox is one's for good, and none is another's trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::process::{Signal, kill_process};
use sandbank_engine::{Awaited, EngineError, SandboxId};
use sandbank_orchestrator::{
    AcquireSource, Clock, CreateRequest, OrchestratorError, PoolEntry, Recipe, SandboxState,
    Settings, SystemClock,
};
use sandbank_test_support::eventually;

use crate::process_engine::ProcessEngine;
use crate::world::{SOON, World, output, request, settings};

fn by(engine: &str, key: &str) -> CreateRequest {
    CreateRequest { engine: Some(engine.to_owned()), ..request(key) }
}

/// The engine of the world, `process`, is the default one.
async fn with_second(settings: Settings) -> (World, Arc<ProcessEngine>) {
    let second = ProcessEngine::named("second");
    let mut world = World::unstarted(settings, Arc::new(SystemClock::new()));
    world.others = vec![second.clone()];
    world.start().await;
    (world, second)
}

async fn says(world: &World, id: &SandboxId, command: &str) -> String {
    world.start_script(id, command, "echo here").await;
    output(&world.attach(id).await.unwrap(), command, 0).await.0
}

fn unavailable(error: &OrchestratorError) -> bool {
    let OrchestratorError::Engine(error) = error else { return false };
    matches!(&**error, EngineError::Unavailable(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_its_engines_from_the_create_to_the_end() {
    let (mut world, second) = with_second(settings()).await;
    let usual = world.create("usual").await;
    let named = world.try_create(by("second", "named")).await.unwrap().id;
    let same = world.try_create(by("process", "usual")).await.unwrap();
    assert_eq!((same.id, same.created), (usual.clone(), false));
    assert_eq!((world.engine.ids(), second.ids()), (vec![usual.clone()], vec![named.clone()]));
    assert_eq!(world.info(&usual).await.engine, "process");
    assert_eq!(world.info(&named).await.engine, "second");

    let refused = world.try_create(by("third", "other")).await.unwrap_err();
    assert_eq!(refused.code(), "engine_not_configured");
    assert!(refused.to_string().contains("process, second"), "{refused}");
    let refused = world.try_create(by("process", "named")).await.unwrap_err();
    assert!(
        matches!(&refused, OrchestratorError::Conflict(why) if why.contains("second")),
        "{refused}"
    );
    assert_eq!(world.daemon().list().await.len(), 2, "nothing else was made");

    for id in [&usual, &named] {
        let id = id.clone();
        world.run(|daemon| async move { daemon.pause(&id).await.unwrap() }).await;
    }
    world.restart_after_kill().await;
    for (id, command) in [(&usual, "one"), (&named, "two")] {
        assert_eq!(world.info(id).await.state, SandboxState::Paused);
        let resumed = id.clone();
        world.run(|daemon| async move { daemon.resume(&resumed).await.unwrap() }).await;
        assert_eq!(says(&world, id, command).await, "here\n");
    }

    let orphans = (world.engine.make_orphan(), second.make_orphan());
    eventually("sweeps of both", SOON, || async {
        let gone = !world.engine.ids().contains(&orphans.0) && !second.ids().contains(&orphans.1);
        gone.then_some(())
    })
    .await
    .unwrap();
    kill_process(second.pid(&named), Signal::KILL).unwrap();
    assert!(world.ended(&named).await.reason.unwrap().contains("runner died"));
    world.stop(&usual).await.unwrap();
    assert!(world.engine.ids().is_empty() && second.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_of_an_engine_that_is_not_configured_any_more_keep_the_daemon_from_starting() {
    let (mut world, second) = with_second(settings()).await;
    let usual = world.create("usual").await;
    let named = world.try_create(by("second", "named")).await.unwrap().id;
    world.kill();
    let configured = std::mem::take(&mut world.others);
    let refused = world.try_start().await.unwrap_err();
    assert!(refused.to_string().contains("one sandbox here is of the engine second"), "{refused}");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("SANDBANK_ENGINE=second") && hint.contains("SANDBANK_ENGINES"), "{hint}");
    assert_eq!((world.engine.ids(), second.ids()), (vec![usual.clone()], vec![named.clone()]));
    world.others = configured;
    world.start().await;
    for (id, command) in [(&usual, "one"), (&named, "two")] {
        assert_eq!(says(&world, id, command).await, "here\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_away_at_the_start_is_waited_for() {
    let (mut world, second) = with_second(settings()).await;
    let named = world.try_create(by("second", "named")).await.unwrap().id;
    let dead = world.try_create(by("second", "dead")).await.unwrap().id;
    world.kill();
    kill_process(second.pid(&dead), Signal::KILL).unwrap();
    let awaited = Arc::new(Awaited::new("second", "it sleeps".to_owned()));
    world.others = vec![awaited.clone()];
    world.start().await;
    // Nothing is known of them, so nothing is done to them; and their keys are theirs.
    assert_eq!(world.info(&named).await.state, SandboxState::Running);
    assert_eq!(world.info(&dead).await.state, SandboxState::Running);
    assert!(unavailable(&world.attach(&named).await.err().unwrap()));
    assert!(unavailable(&world.try_create(by("second", "new")).await.unwrap_err()));
    assert_eq!(world.try_create(by("process", "named")).await.unwrap_err().code(), "conflict");
    let usual = world.create("usual").await;
    assert_eq!(says(&world, &usual, "one").await, "here\n");

    awaited.arrives(second.clone());
    assert!(world.ended(&dead).await.reason.unwrap().contains("runner died"));
    assert_eq!(says(&world, &named, "two").await, "here\n");
    let new = world.try_create(by("second", "new")).await.unwrap().id;
    assert!(second.ids().contains(&new));
}

/// Hours pass in no time.
struct Leaping {
    real: SystemClock,
    ahead_ms: AtomicI64,
}

impl Clock for Leaping {
    fn boot_ms(&self) -> i64 {
        self.real.boot_ms() + self.ahead_ms.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> u64 {
        self.real.wall_ms().saturating_add_signed(self.ahead_ms.load(Ordering::SeqCst))
    }

    fn boot_id(&self) -> &str {
        self.real.boot_id()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn however_long_an_engine_is_away_its_sandboxes_are_not_given_up() {
    let clock = Arc::new(Leaping { real: SystemClock::new(), ahead_ms: AtomicI64::new(0) });
    let second = ProcessEngine::named("second");
    let mut world = World::unstarted(settings(), clock.clone());
    world.others = vec![second.clone()];
    world.start().await;
    let named = world.try_create(by("second", "named")).await.unwrap().id;
    world.start_script(&named, "long", "sleep 600").await;
    world.kill();
    let awaited = Arc::new(Awaited::new("second", "it sleeps".to_owned()));
    world.others = vec![awaited.clone()];
    world.start().await;
    for _ in 0..8 {
        clock.ahead_ms.fetch_add(3_600_000, Ordering::SeqCst);
        // Also asks the sandbox itself, and waits for what comes of it.
        assert_eq!(world.info(&named).await.state, SandboxState::Running);
    }
    awaited.arrives(second.clone());
    assert_eq!(says(&world, &named, "short").await, "here\n");
    let info = world.info(&named).await;
    assert_eq!((info.state, info.commands_running), (SandboxState::Running, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_is_opened_by_the_engine_that_has_it_and_no_other() {
    let (world, second) = with_second(settings()).await;
    let workspace = Some("notes".parse().unwrap());
    let keeping =
        |engine: &str, key: &str| CreateRequest { workspace: workspace.clone(), ..by(engine, key) };
    let first = world.try_create(keeping("second", "first")).await.unwrap().id;
    // While a sandbox has it, and when none has.
    for key in ["other", "another"] {
        let refused = world.try_create(keeping("process", key)).await.unwrap_err();
        assert_eq!(refused.code(), "workspace_elsewhere", "{refused}");
        assert!(refused.to_string().contains("second"), "{refused}");
        world.stop(&first).await.unwrap();
    }
    let again = world.try_create(keeping("second", "again")).await.unwrap().id;
    world.stop(&again).await.unwrap();
    let known = world.run(|daemon| async move { daemon.workspaces().await.unwrap() }).await;
    assert_eq!(known.known.iter().map(|(engine, _)| *engine).collect::<Vec<_>>(), ["second"]);
    let id = workspace.clone().unwrap();
    assert!(world.run(|daemon| async move { daemon.remove_workspace(&id).await.unwrap() }).await);
    world.try_create(keeping("process", "other")).await.unwrap();
    assert!(second.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_of_an_engine_that_does_not_answer_is_not_taken_for_missing() {
    let (mut world, second) = with_second(settings()).await;
    let keeping = |engine: &str, key: &str, name: &str| CreateRequest {
        workspace: Some(name.parse().unwrap()),
        ..by(engine, key)
    };
    for (engine, name) in [("second", "notes"), ("process", "own")] {
        let made = world.try_create(keeping(engine, "first", name)).await.unwrap().id;
        world.stop(&made).await.unwrap();
    }
    world.kill();
    let awaited = Arc::new(Awaited::new("second", "it sleeps".to_owned()));
    world.others = vec![awaited.clone()];
    world.start().await;
    let remove = |name: &str| {
        let id = name.parse().unwrap();
        world.run(|daemon| async move { daemon.remove_workspace(&id).await })
    };
    assert!(unavailable(&remove("notes").await.unwrap_err()));
    assert!(unavailable(&world.try_create(keeping("process", "a", "notes")).await.unwrap_err()));
    let kept = world.run(|daemon| async move { daemon.workspaces().await.unwrap() }).await;
    let engines: Vec<_> = kept.known.iter().map(|(engine, _)| *engine).collect();
    assert_eq!((engines, kept.unavailable), (vec!["process"], vec!["second"]));
    // What is found is no matter of those that do not answer.
    let own = world.try_create(keeping("process", "b", "own")).await.unwrap().id;
    world.stop(&own).await.unwrap();
    assert!(remove("own").await.unwrap());

    awaited.arrives(second.clone());
    let kept = world.run(|daemon| async move { daemon.workspaces().await.unwrap() }).await;
    assert_eq!((kept.known.len(), kept.unavailable.len()), (1, 0), "there is no second one");
    assert!(remove("notes").await.unwrap());
    assert!(!remove("notes").await.unwrap(), "now it is known that there is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_engine_has_its_own_ready_machines() {
    let recipe = |engine: Option<&str>| {
        let CreateRequest { image, network, limits, .. } = request("any");
        Recipe { engine: engine.map(str::to_owned), image, network, limits }
    };
    let pool = vec![
        PoolEntry { recipe: recipe(None), size: 1 },
        PoolEntry { recipe: recipe(Some("second")), size: 2 },
    ];
    let (world, second) = with_second(Settings { pool, ..settings() }).await;
    let full = || async {
        let ready: Vec<_> =
            world.daemon().pool().iter().map(|status| (status.engine, status.ready)).collect();
        (ready == [("process", 1), ("second", 2)]).then_some(())
    };
    eventually("both pools to be full", SOON, full).await.unwrap();
    let before = second.ids();
    let made = world.try_create(by("second", "named")).await.unwrap();
    assert_eq!(made.source, AcquireSource::Pool);
    assert!(before.contains(&made.id));
    assert_eq!(says(&world, &made.id, "one").await, "here\n");

    // One that may make none is no reason for the other to make none.
    world
        .daemon()
        .withhold_creates("second", OrchestratorError::Untested("the test says so".to_owned()));
    let refused = world.try_create(by("second", "refused")).await.unwrap_err();
    assert_eq!(refused.code(), "containment_untested");
    assert_eq!(world.try_create(request("usual")).await.unwrap().source, AcquireSource::Pool);
}
