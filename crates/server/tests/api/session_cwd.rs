//! Where sessions are said to be: what is true, or nothing.

use serde_json::{Value, json};

use crate::world::World;

/// The session's path and its sandbox.
async fn session(world: &World) -> (String, String) {
    let made = world.api.call("POST", "/v1/sessions", Some(json!({}))).await.unwrap();
    let id = made["id"].as_str().unwrap();
    let sandboxes = world.api.sandboxes().await.unwrap();
    let is_it = |sandbox: &&Value| sandbox["key"] == format!("session:{id}");
    let sandbox = sandboxes.iter().find(is_it).unwrap();
    (format!("/v1/sessions/{id}"), sandbox["id"].as_str().unwrap().to_owned())
}

async fn exec(world: &World, session: &str, cmd: &str) -> Value {
    let body = json!({ "cmd": cmd });
    world.api.call("POST", &format!("{session}/exec"), Some(body)).await.unwrap()
}

async fn cwd(world: &World, session: &str) -> Value {
    let seen = world.api.call("GET", session, None).await.unwrap();
    let list = world.api.call("GET", "/v1/sessions", None).await.unwrap();
    let listed = list.as_array().unwrap().iter().find(|other| other["id"] == seen["id"]).unwrap();
    assert_eq!(listed["cwd"], seen["cwd"]);
    seen["cwd"].clone()
}

#[tokio::test]
async fn a_script_that_came_another_way_moves_the_session_too() {
    let world = World::start().await;
    let (s, sandbox) = session(&world).await;
    assert_eq!(exec(&world, &s, "cd /usr").await["cwd"], "/usr");
    assert_eq!(cwd(&world, &s).await, "/usr");
    let body = json!({ "shell": "session", "script": "cd /tmp" });
    let route = format!("/v1/sandboxes/{sandbox}/commands?wait=true");
    world.api.call("POST", &route, Some(body)).await.unwrap();
    assert_eq!(cwd(&world, &s).await, "/tmp");
}

#[tokio::test]
async fn a_session_that_has_ended_or_does_not_answer_is_nowhere() {
    let world = World::start().await;
    let (ended, _) = session(&world).await;
    let (silent, sandbox) = session(&world).await;
    let (honest, _) = session(&world).await;
    for s in [&ended, &silent, &honest] {
        exec(&world, s, "cd /usr").await;
        assert_eq!(cwd(&world, s).await, "/usr");
    }
    world.api.call("DELETE", &ended, None).await.unwrap();
    // Accepts nobody: whoever connects waits.
    let _listener = world.engine.impersonate(&sandbox.parse().unwrap());
    world.engine.cut_channels();
    assert_eq!(cwd(&world, &silent).await, "");
    assert_eq!(cwd(&world, &ended).await, "");
    assert_eq!(cwd(&world, &honest).await, "/usr");
}

#[tokio::test]
async fn a_session_is_where_its_last_ended_script_left_it_while_others_run_and_wait() {
    let world = World::start().await;
    let (s, sandbox) = session(&world).await;
    exec(&world, &s, "cd /usr").await;
    let go = world.data.path().join("go");
    let wait = format!("cd /tmp; until [ -e {} ]; do sleep 0.01; done", go.display());
    let route = format!("/v1/sandboxes/{sandbox}/commands");
    let mut last = Value::Null;
    for script in [wait.as_str(), "cd /", "cd /etc"] {
        let body = json!({ "shell": "session", "script": script });
        last = world.api.call("POST", &route, Some(body)).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(cwd(&world, &s).await, "/usr");
    }
    std::fs::write(&go, "").unwrap();
    world.api.wait(&sandbox, last["commandId"].as_str().unwrap()).await.unwrap();
    assert_eq!(cwd(&world, &s).await, "/etc");
}
