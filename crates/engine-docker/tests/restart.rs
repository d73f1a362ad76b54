//! Docker itself stops, is killed, and comes back.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use sandbank_engine::{DeathCause, Engine, EngineError, MachineState};
use sandbank_engine_docker::DockerEngine;
use sandbank_test_support::{PrivateDocker, busybox_root};
use support::{run, settings, soon, spec, wait_for};

async fn engine_with_image(docker: &PrivateDocker) -> Option<Arc<DockerEngine>> {
    let engine = Arc::new(DockerEngine::start(settings(docker)).await.unwrap());
    let archive = docker.dir().join("root.tar");
    busybox_root(&archive).unwrap()?;
    engine.import_image(&support::image(), &archive, &|_| {}).await.unwrap();
    Some(engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_away_is_unavailable_and_machines_that_ended_with_it_are_dead() {
    let Some(mut docker) = PrivateDocker::start(false).unwrap() else { return };
    let Some(engine) = engine_with_image(&docker).await else { return };
    let id = engine.create(&spec()).await.unwrap().id;
    let waiting = {
        let (engine, id) = (engine.clone(), id.clone());
        tokio::spawn(async move { engine.wait_dead(&id).await })
    };
    docker.stop_daemon().unwrap();
    let unavailable = |result: Result<(), EngineError>| match result {
        Err(EngineError::Unavailable(text)) => assert!(text.contains("docker.sock"), "{text}"),
        other => panic!("{other:?}"),
    };
    unavailable(engine.list().await.map(drop));
    unavailable(engine.images().await.map(drop));
    unavailable(engine.create(&spec()).await.map(drop));
    unavailable(engine.stats(&id).await.map(drop));
    unavailable(engine.workspaces().await.map(drop));
    unavailable(engine.destroy(&id).await);
    docker.start_daemon().unwrap();
    let cause = soon("the death is told", waiting).await.unwrap().unwrap();
    assert!(
        matches!(
            cause,
            DeathCause::ContainerKilled
                | DeathCause::Signaled { signal: 9 }
                | DeathCause::Exited { .. }
        ),
        "{cause:?}"
    );
    let listed = engine.list().await.unwrap();
    assert_eq!(listed.iter().find(|m| m.id == id).unwrap().state, MachineState::Dead);
    engine.destroy(&id).await.unwrap();
    // It works again.
    let id = engine.create(&spec()).await.unwrap().id;
    engine.destroy(&id).await.unwrap();
    assert!(engine.list().await.unwrap().is_empty());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_outlives_docker_goes_on() {
    let Some(mut docker) = PrivateDocker::start(true).unwrap() else { return };
    let Some(engine) = engine_with_image(&docker).await else { return };
    let id = engine.create(&spec()).await.unwrap().id;
    let connect = async || {
        let stream = engine.connect(&id).await?;
        Ok::<_, EngineError>(sandbank_channel::RunnerClient::connect(stream).await)
    };
    let (client, before) = connect().await.unwrap().unwrap();
    let command = support::command(&["/bin/sh", "-c", "sleep 3; echo done"]);
    client.start(&command).await.unwrap();
    docker.kill_daemon().unwrap();
    docker.start_daemon().unwrap();
    let mut reached = None;
    wait_for("the runner answers again", async || {
        reached = match connect().await {
            Ok(Ok(reached)) => Some(reached),
            _ => None,
        };
        reached.is_some()
    })
    .await;
    let (client, after) = reached.unwrap();
    assert_eq!(after.epoch, before.epoch, "it is the same runner");
    let status = soon("the command", client.wait(&command.id)).await.unwrap();
    assert_eq!(status.ending().unwrap().exit_code(), Some(0));
    assert_eq!(run(&client, &["echo", "still here"]).await.stdout, "still here\n");
    let listed = engine.list().await.unwrap();
    assert_eq!(listed.iter().find(|m| m.id == id).unwrap().state, MachineState::Running);
    engine.destroy(&id).await.unwrap();
    engine.shutdown().await;
}
