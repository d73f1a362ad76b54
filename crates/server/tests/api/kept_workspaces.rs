//! Kept workspaces: who may open them, under which name, and through which sandbox.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::world::{World, code, refusal, refused};

async fn sandbox_with(world: &World, key: &str, workspace: &str) -> String {
    let body = json!({ "sessionKey": key, "workspace": workspace });
    world.api.create_with(body).await.unwrap()
}

async fn write(world: &World, workspace: &str, path: &str) {
    let body = json!({ "path": path, "text": workspace });
    let route = format!("/v1/workspaces/{workspace}/fs/write");
    world.api.call("POST", &route, Some(body)).await.unwrap();
}

async fn names(world: &World, workspace: &str) -> Vec<String> {
    let route = format!("/v1/workspaces/{workspace}/fs");
    let listed = world.api.call("GET", &route, None).await.unwrap();
    let name = |entry: &Value| entry["name"].as_str().unwrap().to_owned();
    listed["entries"].as_array().unwrap().iter().map(name).collect()
}

async fn kept(world: &World) -> Vec<String> {
    let listed = world.api.call("GET", "/v1/workspaces", None).await.unwrap();
    let id = |entry: &Value| entry["id"].as_str().unwrap().to_owned();
    listed["workspaces"].as_array().unwrap().iter().map(id).collect()
}

async fn keys(world: &World) -> Vec<String> {
    let sandboxes = world.api.sandboxes().await.unwrap();
    sandboxes.iter().map(|sandbox| sandbox["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn only_a_token_opens_a_kept_workspace_on_loopback_too() {
    let world = World::start().await;
    sandbox_with(&world, "with-it", "project").await;
    let create = |body: Value| world.open("POST", "/v1/sandboxes").json(&body);
    let named = create(json!({ "sessionKey": "mine", "workspace": "project" }));
    let (status, code, body) = refusal(named.send().await.unwrap()).await;
    assert_eq!((status.as_u16(), code.as_str()), (401, "unauthorized"));
    assert!(body["hint"].as_str().unwrap().contains("kept workspace"), "{body}");
    let found = create(json!({ "sessionKey": "with-it" })).send().await.unwrap();
    let (status, _, body) = refusal(found).await;
    assert_eq!(status, 401, "found by its key, it has the workspace all the same");
    assert!(!body.to_string().contains("sandboxId"), "{body}");
    for body in [json!({ "sessionKey": "own" }), json!({ "sessionKey": "own", "workspace": null })]
    {
        assert_eq!(create(body.clone()).send().await.unwrap().status(), 200, "{body}");
    }
    assert_eq!(keys(&world).await.len(), 2, "nothing was made for the refused ones");
    let with_token = create(json!({ "sessionKey": "mine", "workspace": "project" }));
    let made = with_token.bearer_auth(&world.token).send().await.unwrap();
    assert_eq!(made.status(), 200);
}

#[tokio::test]
async fn a_sandbox_behind_a_session_or_a_kept_workspace_needs_a_token_on_loopback_too() {
    let world = World::start().await;
    sandbox_with(&world, "with-it", "project").await;
    world.api.call("POST", "/v1/sessions", Some(json!({}))).await.unwrap();
    let own = world.api.create("own").await.unwrap();
    let all = world.api.call("GET", "/v1/sandboxes", None).await.unwrap();
    let ids = all["sandboxes"].as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap());
    for id in ids {
        let path = format!("/v1/sandboxes/{id}/commands");
        let run = || world.open("POST", &path).json(&json!({ "argv": ["true"] }));
        let expected = if id == own { 200 } else { 401 };
        assert_eq!(run().send().await.unwrap().status(), expected, "{id}");
        let known = run().bearer_auth(&world.token).send().await.unwrap();
        assert_eq!(known.status(), 200, "{id}");
    }
}

#[tokio::test]
async fn keys_of_sessions_and_caretakers_are_not_for_callers() {
    let world = World::start().await;
    let made = world.api.call("POST", "/v1/sessions", Some(json!({}))).await.unwrap();
    let session = format!("session:{}", made["id"].as_str().unwrap());
    let create =
        |key: &str| world.open("POST", "/v1/sandboxes").json(&json!({ "sessionKey": key }));
    for key in [&session, &format!("  {session} "), "session:", "session:x", "workspace:project"] {
        for request in [create(key), create(key).bearer_auth(&world.token)] {
            assert_eq!(refused(request).await, code(400, "invalid_session_key"), "{key}");
        }
    }
    assert_eq!(keys(&world).await, [session]);
    for key in ["session", "sessions:1", "my-session:1", "workspaces"] {
        assert_eq!(create(key).send().await.unwrap().status(), 200, "{key}");
    }
}

#[tokio::test]
async fn a_name_with_the_old_prefix_is_the_exact_one_first() {
    let world = World::start().await;
    let exact = "sandkasten-ws-foo";
    let holder = sandbox_with(&world, "holder", exact).await;
    write(&world, exact, "of-exact").await;
    write(&world, "foo", "of-foo").await;
    assert_eq!(names(&world, exact).await, ["of-exact"]);
    assert_eq!(names(&world, "foo").await, ["of-foo"]);
    let request = json!({ "workspace_id": exact });
    let session = world.api.call("POST", "/v1/sessions", Some(request)).await.unwrap();
    assert_eq!(session["workspace_id"], exact);
    let session = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    world.api.call("DELETE", &session, None).await.unwrap();
    world.api.stop(&holder).await.unwrap();

    world.api.call("DELETE", &format!("/v1/workspaces/{exact}"), None).await.unwrap();
    assert_eq!(kept(&world).await, ["foo"]);
    assert_eq!(names(&world, exact).await, ["of-foo"], "with no exact one it is the prefix");
    world.api.call("DELETE", &format!("/v1/workspaces/{exact}"), None).await.unwrap();
    assert!(kept(&world).await.is_empty());
}

#[tokio::test]
async fn files_are_reached_through_the_sandbox_that_has_the_workspace_else_a_caretaker() {
    let world = World::start().await;
    let holder = sandbox_with(&world, "holder", "project").await;
    write(&world, "project", "a").await;
    assert_eq!(names(&world, "project").await, ["a"]);
    let read = "/v1/workspaces/project/fs/read?path=a";
    world.api.call("GET", read, None).await.unwrap();
    let absent = world.api.try_call("GET", "/v1/workspaces/none-such/fs", None).await.unwrap();
    assert_eq!(absent.0, 404);
    assert_eq!(keys(&world).await, ["holder"], "no caretaker beside it");
    world.api.stop(&holder).await.unwrap();
    assert_eq!(names(&world, "project").await, ["a"]);
    assert_eq!(keys(&world).await, ["workspace:project"]);
    assert_eq!(world.engine.measured.load(Ordering::SeqCst), 0, "no workspace was measured");
    kept(&world).await;
    assert_eq!(world.engine.measured.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_key_that_is_refused_without_a_token_is_not_a_use_of_its_sandbox() {
    let world = World::start().await;
    let body = json!({ "sessionKey": "with-it", "workspace": "project", "ports": [3000] });
    let id = world.api.create_with(body).await.unwrap();
    let path = format!("/v1/sandboxes/{id}");
    world.api.call("POST", &format!("{path}:pause"), None).await.unwrap();
    let before = world.api.call("GET", &path, None).await.unwrap();
    let found = json!({ "sessionKey": "with-it", "ports": [3000], "idleTtlMs": 10_000 });
    let found = || world.open("POST", "/v1/sandboxes").json(&found);
    assert_eq!(refused(found()).await, code(401, "unauthorized"));
    let after = world.api.call("GET", &path, None).await.unwrap();
    for field in ["state", "idleTtlMs", "published"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(after["state"], "paused");
    let known = found().bearer_auth(&world.token).send().await.unwrap();
    assert_eq!(known.status(), 200);
    let used = world.api.call("GET", &path, None).await.unwrap();
    assert_eq!((&used["state"], &used["idleTtlMs"]), (&json!("running"), &json!(10_000)));
}

#[tokio::test]
async fn a_workspace_in_use_names_the_sessions_that_have_it() {
    let world = World::start().await;
    let request = json!({ "workspace_id": "project" });
    let session = world.api.call("POST", "/v1/sessions", Some(request)).await.unwrap();
    let session = session["id"].as_str().unwrap();
    let remove = || world.api.try_call("DELETE", "/v1/workspaces/project", None);
    let (status, body) = remove().await.unwrap();
    assert_eq!((status, &body["error_code"]), (409, &json!("CONFLICT")), "{body}");
    let message = format!("the workspace project is in use by session {session}");
    assert_eq!(
        (&body["message"], &body["details"]["code"]),
        (&json!(message), &json!("workspace_in_use"))
    );
    let sandbox = sandbox_with(&world, "holder", "project").await;
    let (_, body) = remove().await.unwrap();
    let message = body["message"].as_str().unwrap();
    assert!(message.contains(session) && message.contains(&format!("sandbox {sandbox}")), "{body}");
    world.api.call("DELETE", &format!("/v1/sessions/{session}"), None).await.unwrap();
    world.api.stop(&sandbox).await.unwrap();
    assert_eq!(remove().await.unwrap().0, 200);
}
