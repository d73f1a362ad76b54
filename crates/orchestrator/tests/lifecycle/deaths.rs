//! Machines that die by themselves, or are taken away.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use sandbank_engine::{DeathCause, MachineSpec};
use sandbank_orchestrator::{Cause, SandboxState, Settings};
use sandbank_protocol::Ending;
use sandbank_test_support::eventually;

use crate::world::{SOON, World, bash, output, request, settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_runner_is_a_failed_sandbox_with_a_post_mortem() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let attached = world.attach(&id).await.unwrap();
    attached.start(&bash("c1", "echo up; sleep 60")).await.unwrap();
    let mut stream = attached.output(&"c1".parse().unwrap(), 0, true).await.unwrap();
    stream.next().await.unwrap();

    kill_process(world.engine.pid(&id), Signal::KILL).unwrap();
    world.reaches(&id, SandboxState::Failed).await;
    let drain = async { while let Ok(Some(_)) = stream.next().await {} };
    tokio::time::timeout(SOON, drain).await.expect("the stream ends");

    let death = Cause::RunnerDied { death: DeathCause::Signaled { signal: 9 } };
    assert_eq!(attached.ended().await, death);
    let error = world.attach(&id).await.err().unwrap();
    assert_eq!(error.code(), "sandbox_gone");
    assert!(error.to_string().contains("signal 9"), "{error}");
    world.ended(&id).await;
    assert!(world.engine.ids().is_empty());
    let gone = id.clone();
    let seen = world.run(|daemon| async move { daemon.post_mortem(&gone).await.unwrap() }).await;
    assert_eq!(seen.cause, death);
    assert!(matches!(seen.last_commands[0].ending(), Some(Ending::Lost { .. })));
    let again = world.try_create(request("chat:1")).await.unwrap();
    assert!(again.created && again.id != id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_removed_behind_our_back_is_noticed() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.engine.remove_behind_the_back(&id);
    let info = world.ended(&id).await;
    assert_eq!(info.state, SandboxState::Failed);
    assert!(info.reason.unwrap().contains("it was lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_an_owner_is_destroyed() {
    let world = World::new(settings()).await;
    let kept = world.create("chat:1").await;
    let orphan = world.engine.make_orphan();
    eventually("the orphan to go", SOON, || async {
        (!world.engine.ids().contains(&orphan)).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(world.engine.ids(), [kept]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_channel_is_made_anew_and_loses_nothing() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    let attached = world.attach(&id).await.unwrap();
    attached.start(&bash("c1", "echo one; sleep 1; echo two")).await.unwrap();
    let mut stream = attached.output(&"c1".parse().unwrap(), 0, true).await.unwrap();
    let seen = stream.next().await.unwrap().unwrap().seq();
    world.engine.cut_channels();
    let rest = async { while let Ok(Some(_)) = stream.next().await {} };
    tokio::time::timeout(SOON, rest).await.expect("the old stream ends");

    let stats = world.run(move |_| async move {
        attached.run(|client| async move { client.stats().await }).await
    });
    assert_eq!(stats.await.unwrap().commands_running, 1);
    let attached = world.attach(&id).await.unwrap();
    let again = attached.start(&bash("c1", "echo one; sleep 1; echo two")).await.unwrap();
    assert!(again.attached, "the id makes it the same command");
    assert_eq!(output(&attached, "c1", seen).await.0, "two\n");
    assert_eq!(world.info(&id).await.state, SandboxState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_restarted_has_no_commands() {
    let world = World::new(settings()).await;
    let id = world.create("chat:1").await;
    world.start_script(&id, "c1", "sleep 60").await;
    assert_eq!(world.info(&id).await.commands_running, 1);
    let request = request("chat:1");
    world.engine.restart_runner(&MachineSpec {
        id: id.clone(),
        image: request.image,
        limits: request.limits,
        network: request.network,
        env: request.env,
        workspace: None,
    });
    eventually("the loss to be seen", SOON, || async {
        (world.info(&id).await.commands_running == 0).then_some(())
    })
    .await
    .unwrap();
    let (events, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    assert!(events.iter().any(|event| event.kind == "runner.restarted"));
    let attached = world.attach(&id).await.unwrap();
    let missing = attached.command(&"c1".parse().unwrap()).await;
    assert!(missing.is_err(), "it is not said to be running");
}

/// Stopped where it stands, it accepts connections and says nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_mute_runner_keeps_nobody_waiting_in_line_and_is_lost() {
    let ttl = Duration::from_secs(2);
    let world = World::new(Settings { default_idle_ttl: ttl, ..settings() }).await;
    let other = world.create("other").await;
    let held = world.attach(&other).await.unwrap();
    let id = world.create("chat:1").await;
    kill_process(world.engine.pid(&id), Signal::STOP).unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (daemon, id) = (world.daemon(), id.clone());
        callers.spawn(async move { daemon.attach(&id).await.err().unwrap() });
    }
    let errors = tokio::time::timeout(2 * SOON, callers.join_all()).await.expect("nobody hangs");
    for error in errors {
        assert!(["channel_timed_out", "sandbox_gone"].contains(&error.code()), "{error}");
    }
    held.stats().await.expect("the others go on");
    let info = world.ended(&id).await;
    assert_eq!(info.state, SandboxState::Failed);
    assert!(info.reason.unwrap().contains("did not answer"));
}
