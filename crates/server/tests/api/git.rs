//! Repositories in the workspace.

use serde_json::{Value, json};

use crate::world::{World, code, refusal, refused};

const SETUP: &str = "git init -q -b main && git config user.name ann && \
    git config user.email ann@example.org && echo one > a.txt && git add . && \
    git commit -qm first && echo two > a.txt && mkdir d && echo new > d/new";

async fn get(world: &World, id: &str, verb: &str) -> Value {
    let request = world.api.request("GET", &format!("/v1/sandboxes/{id}/git:{verb}"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{verb}");
    response.json().await.unwrap()
}

async fn post(world: &World, id: &str, verb: &str, body: Value) -> Value {
    let request = world.api.request("POST", &format!("/v1/sandboxes/{id}/git:{verb}"));
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200, "{verb}");
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_repository_is_looked_at_and_changed() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let none = get(&world, &id, "status").await;
    assert_eq!((&none["isRepository"], &none["entries"]), (&json!(false), &json!([])));
    assert_eq!(world.api.run(&id, SETUP).await.unwrap().0, 0);

    let status = get(&world, &id, "status").await;
    assert_eq!((&status["isRepository"], &status["root"]), (&json!(true), &json!(".")));
    assert_eq!(status["head"]["branch"], "main");
    let entry = |path: &str, worktree: &str| json!({ "path": path, "index": "none", "worktree": worktree, "conflict": false, "submodule": false });
    assert_eq!(status["entries"], json!([entry("a.txt", "modified"), entry("d/", "untracked")]));
    let diff = get(&world, &id, "diff?path=a.txt&from=HEAD").await;
    assert!(diff["diff"].as_str().unwrap().contains("-one\n+two"), "{diff}");
    let show = get(&world, &id, "show?path=a.txt").await;
    assert_eq!((&show["found"], &show["content"]), (&json!(true), &json!("one\n")));
    assert_eq!(get(&world, &id, "show?path=d/new").await["found"], false);

    post(&world, &id, "stage", json!({ "paths": ["a.txt", "d/new"] })).await;
    post(&world, &id, "unstage", json!({ "paths": ["d/new"] })).await;
    let made = post(&world, &id, "commit", json!({ "message": "second" })).await;
    let log = get(&world, &id, "log?limit=1").await;
    assert_eq!((&log["commits"][0]["id"], &log["more"]), (&made["commit"], &json!(true)));
    assert_eq!(log["commits"][0]["author"], json!({ "name": "ann", "email": "ann@example.org" }));
    post(&world, &id, "checkout", json!({ "branch": "topic", "create": true })).await;
    let branches = get(&world, &id, "branches").await;
    let current =
        branches["branches"].as_array().unwrap().iter().find(|one| one["current"] == true);
    assert_eq!(current.unwrap()["name"], "topic");
    assert_eq!(get(&world, &id, "status").await["entries"], json!([entry("d/", "untracked")]));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_reason() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let request = |method: &str, verb: &str| {
        world.api.request(method, &format!("/v1/sandboxes/{id}/git:{verb}"))
    };
    for (verb, refusal) in [
        ("status?path=../x", "invalid_path"),
        ("status?untracked=maybe", "invalid"),
        ("show", "path_required"),
        ("show?path=a&revision=--help", "invalid"),
        ("diff?to=HEAD", "invalid"),
        ("log?limit=x", "bad_query"),
    ] {
        assert_eq!(refused(request("GET", verb)).await, code(400, refusal), "{verb}");
    }
    for (verb, body) in [
        ("stage", json!({})),
        ("stage", json!({ "paths": ["../x"] })),
        ("commit", json!({ "message": "x", "colour": "red" })),
        ("commit", json!({})),
        ("checkout", json!({ "branch": "-x" })),
    ] {
        assert_eq!(refused(request("POST", verb).json(&body)).await.0, 400, "{verb} {body}");
    }
    let nothing = request("POST", "stage").json(&json!({ "all": true }));
    let (_, refusal_code, body) = refusal(nothing.send().await.unwrap()).await;
    assert_eq!(refusal_code, "conflict");
    assert!(body["error"].as_str().unwrap().contains("no repository"));
    let open = world.open("GET", &format!("/v1/sandboxes/{id}/git:status"));
    assert_eq!(open.send().await.unwrap().status(), 401);
}
