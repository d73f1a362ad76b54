//! The event stream: stored events first, then live ones, from any number on.

use serde_json::Value;

use crate::world::{World, code, refused};

/// Reads events until one of this kind, and gives all of them.
async fn until(world: &World, after: Option<u64>, kind: &str) -> Vec<Value> {
    let mut request = world.api.request("GET", "/v1/events");
    if let Some(after) = after {
        request = request.header("last-event-id", after.to_string());
    }
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut text, mut events) = (String::new(), Vec::<Value>::new());
    while !events.iter().any(|event| event["kind"] == kind) {
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
