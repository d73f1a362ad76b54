//! The event stream: stored events first, then live ones, from any number on.

use sandbank_test_support::Api;
use serde_json::{Value, json};

use crate::world::{World, code, refused};

/// Reads events until one of this kind, and gives all of them.
async fn until(world: &World, after: Option<u64>, kind: &str) -> Vec<Value> {
    seen(&world.api, after, |event| event["kind"] == kind).await
}

/// Reads events until there was one like this, and gives all of them.
async fn seen(api: &Api, after: Option<u64>, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut request = api.request("GET", "/v1/events");
    if let Some(after) = after {
        request = request.header("last-event-id", after.to_string());
    }
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut text, mut events) = (String::new(), Vec::<Value>::new());
    while !events.iter().any(&is_last) {
        let chunk = response.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                let data: Value = serde_json::from_str(data).unwrap();
                assert!(
                    event.contains(&format!("id: {}\n", data["seq"]))
                        || event.ends_with(&format!("id: {}", data["seq"])),
                    "{event}"
                );
                events.push(data);
            }
            text = rest.to_owned();
        }
    }
    events
}

#[tokio::test]
async fn events_are_replayed_then_live_and_resumed_by_number() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let stored = until(&world, None, "sandbox.running").await;
    assert!(stored.iter().any(|event| event["sandboxId"] == id.as_str()), "{stored:?}");
    let last = stored.last().unwrap()["seq"].as_u64().unwrap();
    let (live, ()) = tokio::join!(until(&world, Some(last), "sandbox.stopped"), async {
        world.api.stop(&id).await.unwrap();
    });
    assert!(live.iter().all(|event| event["seq"].as_u64().unwrap() > last), "{live:?}");
}

#[tokio::test]
async fn a_number_that_is_none_is_refused() {
    let world = World::start().await;
    let odd = world.api.request("GET", "/v1/events").header("last-event-id", "x");
    assert_eq!(refused(odd).await, code(400, "bad_event_id"));
    let odd = world.api.request("GET", "/v1/events?after=x");
    assert_eq!(refused(odd).await, code(400, "bad_query"));
}

#[tokio::test]
async fn what_happens_to_the_sandbox_behind_the_sessions_is_told_to_the_admin_alone() {
    let world = World::with(&[
        ("workspace.mode", "sandbox"),
        ("workspace.identity_binding", "true"),
        ("workspace.loopback_open", "false"),
    ])
    .await;
    let body = json!({ "name": "ann", "scope": "sandbox" });
    let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
    let token = made["token"].as_str().unwrap().to_owned();
    let user = Api::new(format!("http://127.0.0.1:{}", world.address.port()), token);
    user.call("PUT", "/api/file?path=a", Some(json!({ "content": "x" }))).await.unwrap();
    let sandboxes = world.api.sandboxes().await.unwrap();
    let behind = sandboxes[0]["id"].as_str().unwrap().to_owned();
    let is_of = |event: &Value, id: &str| event.to_string().contains(id);
    let own = user.create("own").await.unwrap();
    let is_running =
        |event: &Value| event["sandboxId"] == own.as_str() && event["kind"] == "sandbox.running";
    let stored = seen(&user, None, is_running).await;
    assert!(!stored.iter().any(|event| is_of(event, &behind)), "stored: {stored:?}");
    let last = stored.last().unwrap()["seq"].as_u64().unwrap();
    let is_stopped =
        |event: &Value| event["sandboxId"] == own.as_str() && event["kind"] == "sandbox.stopped";
    let (live, ()) = tokio::join!(seen(&user, Some(last), is_stopped), async {
        world.api.stop(&behind).await.unwrap();
        user.stop(&own).await.unwrap();
    });
    assert!(!live.iter().any(|event| is_of(event, &behind)), "live: {live:?}");
    // What is left of it is no more for everybody than it was itself.
    let again = seen(&user, None, is_stopped).await;
    assert!(!again.iter().any(|event| is_of(event, &behind)), "after its end: {again:?}");
    let post_mortem = format!("/v1/sandboxes/{behind}/post-mortem");
    let hidden = user.request("GET", &post_mortem);
    assert_eq!(refused(hidden).await, code(404, "sandbox_not_found"));
    let all = seen(&world.api, None, is_stopped).await;
    let of_it = all.iter().filter(|event| is_of(event, &behind)).count();
    assert!(of_it >= 3, "created, running and stopped: {all:?}");
    world.api.call("GET", &post_mortem, None).await.unwrap();
}
