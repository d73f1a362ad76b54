//! Sandboxes with kept workspaces.

use sandbank_engine::{SandboxId, WorkspaceId};
use sandbank_orchestrator::{CreateRequest, OrchestratorError};

use crate::world::{World, output, request, settings};

fn id(name: &str) -> WorkspaceId {
    name.parse().unwrap()
}

fn keeping(key: &str, workspace: &str) -> CreateRequest {
    CreateRequest { workspace: Some(id(workspace)), ..request(key) }
}

async fn remove(world: &World, workspace: &str) -> Result<bool, OrchestratorError> {
    let workspace = id(workspace);
    world.run(|daemon| async move { daemon.remove_workspace(&workspace).await }).await
}

async fn names(world: &World) -> Vec<WorkspaceId> {
    let infos = world.run(|daemon| async move { daemon.workspaces().await.unwrap() }).await;
    infos.known.into_iter().map(|(_, info)| info.id).collect()
}

async fn says(world: &World, sandbox: &SandboxId, command: &str, script: &str) -> String {
    let attached = world.attach(sandbox).await.unwrap();
    attached.start(&crate::world::bash(command, script)).await.unwrap();
    output(&attached, command, 0).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_workspace_outlives_its_sandbox_and_a_killed_daemon() {
    let mut world = World::new(settings()).await;
    let first = world.try_create(keeping("chat:1", "project")).await.unwrap().id;
    assert_eq!(says(&world, &first, "c1", "echo kept > file").await, "");
    assert_eq!(world.info(&first).await.workspace, Some(id("project")));
    world.restart_after_kill().await;
    assert_eq!(world.info(&first).await.workspace, Some(id("project")), "its row says so");
    world.stop(&first).await.unwrap();
    assert_eq!(world.ended(&first).await.workspace, Some(id("project")));
    assert_eq!(names(&world).await, [id("project")]);
    let second = world.try_create(keeping("chat:1", "project")).await.unwrap().id;
    assert_eq!(says(&world, &second, "c2", "cat file").await, "kept\n");
    let own = world.create("chat:2").await;
    assert_eq!(world.info(&own).await.workspace, None);
    assert_eq!(says(&world, &own, "c3", "ls").await, "", "a workspace of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_removed_only_when_no_sandbox_has_it() {
    let mut world = World::new(settings()).await;
    assert!(!remove(&world, "project").await.unwrap(), "there is none");
    let first = world.try_create(keeping("chat:1", "project")).await.unwrap().id;
    let second = world.try_create(keeping("chat:2", "project")).await.unwrap().id;
    for _ in 0..2 {
        let error = remove(&world, "project").await.unwrap_err();
        assert_eq!(error.code(), "workspace_in_use");
        let text = error.to_string();
        assert!(text.contains(first.as_str()) && text.contains(second.as_str()), "{text}");
        world.restart_after_kill().await;
    }
    world.stop(&first).await.unwrap();
    let text = remove(&world, "project").await.unwrap_err().to_string();
    assert!(!text.contains(first.as_str()) && text.contains(second.as_str()), "{text}");
    world.stop(&second).await.unwrap();
    assert!(remove(&world, "project").await.unwrap());
    assert!(!remove(&world, "project").await.unwrap());
    assert_eq!(names(&world).await, []);
}

/// It has no machine yet, so the engine knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_is_being_made_keeps_its_workspace() {
    let world = World::new(settings()).await;
    let first = world.try_create(keeping("chat:1", "project")).await.unwrap().id;
    world.stop(&first).await.unwrap();
    let permits = world.engine.create_gate.acquire_many(1000).await.unwrap();
    world.spawn(|daemon| async move { daemon.create(keeping("chat:2", "project")).await });
    sandbank_test_support::eventually("the sandbox", crate::world::SOON, || async {
        (!world.daemon().list().await.is_empty()).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(remove(&world, "project").await.unwrap_err().code(), "workspace_in_use");
    drop(permits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_sandbox_has_another_workspace_is_a_conflict() {
    let world = World::new(settings()).await;
    let kept = world.try_create(keeping("chat:1", "project")).await.unwrap().id;
    let own = world.create("chat:2").await;
    for (key, name) in [("chat:1", "other"), ("chat:2", "project")] {
        let error = world.try_create(keeping(key, name)).await.unwrap_err();
        assert_eq!(error.code(), "conflict", "{error}");
    }
    assert_eq!(world.try_create(keeping("chat:1", "project")).await.unwrap().id, kept);
    assert_eq!(world.create("chat:1").await, kept, "whoever names none takes what there is");
    assert_eq!(world.create("chat:2").await, own);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_tell_when_a_workspace_is_made_and_removed() {
    let world = World::new(settings()).await;
    for key in ["chat:1", "chat:2"] {
        let sandbox = world.try_create(keeping(key, "project")).await.unwrap().id;
        world.stop(&sandbox).await.unwrap();
    }
    assert!(remove(&world, "project").await.unwrap());
    let (events, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    let told = events.iter().filter(|event| event.kind.starts_with("workspace."));
    let told: Vec<_> =
        told.map(|event| (event.kind.as_str(), event.detail["workspace"].clone())).collect();
    let name = serde_json::json!("project");
    assert_eq!(told, [("workspace.created", name.clone()), ("workspace.removed", name)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_fails_leaves_no_workspace_that_it_made_and_every_other_one() {
    let world = World::new(settings()).await;
    let broken = |workspace: &str| CreateRequest {
        image: "broken".parse().unwrap(),
        ..keeping("chat:1", workspace)
    };
    let user = world.try_create(keeping("chat:2", "used")).await.unwrap().id;
    says(&world, &user, "c1", "echo kept > file").await;
    let empty = world.try_create(keeping("chat:3", "empty")).await.unwrap().id;
    world.stop(&empty).await.unwrap();
    for workspace in ["new", "used", "empty"] {
        let error = world.try_create(broken(workspace)).await.unwrap_err();
        assert_eq!(error.code(), "bad_image", "{error}");
    }
    let gone = || async { (world.daemon().list().await.len() == 1).then_some(()) };
    sandbank_test_support::eventually("the failed ones", crate::world::SOON, gone).await.unwrap();
    let mut left = names(&world).await;
    left.sort();
    assert_eq!(left, [id("empty"), id("used")], "those that were there before stay");
    assert_eq!(says(&world, &user, "c2", "cat file").await, "kept\n");
    let (events, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    let of_new = |event: &&sandbank_orchestrator::Event| event.detail["workspace"] == "new";
    assert_eq!(events.iter().filter(of_new).count(), 0, "nobody was told of it");
}
