//! The end of serving: requests finish, streams break off, waits are told, and force is force.

use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::Value;

use crate::world::World;

#[tokio::test]
async fn draining_ends_streams_and_waits_and_then_the_server() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "echo up; sleep 60").await;
    let mut logs = world.open("GET", &format!("{command}/logs")).send().await.unwrap();
    logs.chunk().await.unwrap();
    let wait = tokio::spawn(world.open("GET", &format!("{command}/wait")).send());
    let busy = |readers: u64| {
        let path = format!("/v1/sandboxes/{id}/stats");
        let api = &world.api;
        async move {
            let stats = api.call("GET", &path, None).await.unwrap();
            stats["runner"]["readersOpen"].as_u64().unwrap_or(0) >= readers
        }
    };
    wait_for("the log reader", Duration::from_secs(10), || busy(1)).await.unwrap();
    world.shutdown.drain();
    assert!(logs.chunk().await.is_err(), "a part must not look like the whole");
    let answer = wait.await.unwrap();
    // The wait may have come just after the listener was closed.
    if let Ok(answer) = answer {
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], "shutting_down");
    }
    let served = tokio::time::timeout(Duration::from_secs(20), world.server).await;
    served.expect("the server ends").unwrap().unwrap();
}

#[tokio::test]
async fn draining_breaks_a_long_wait_off_instead_of_making_up_an_ending() {
    let world = World::with_eager_waits().await;
    let id = world.sandbox().await;
    let command = world.bash(&id, "sleep 60").await;
    let wait = world.open("GET", &format!("{command}/wait")).send().await.unwrap();
    assert_eq!(wait.status(), 200, "the headers are there before the ending");
    world.shutdown.drain();
    assert!(wait.bytes().await.is_err());
}

#[tokio::test]
async fn force_cuts_what_is_left() {
    let world = World::with(&[("server.shutdown_grace_ms", "600000")]).await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let endless = futures_util::stream::pending::<std::io::Result<Vec<u8>>>();
    let request = world.api.request("PUT", &path).body(reqwest::Body::wrap_stream(endless));
    let upload = tokio::spawn(request.send());
    let list = || world.api.call("GET", "/v1/sandboxes", None);
    wait_for("the upload", Duration::from_secs(10), || async {
        list().await.unwrap()["sandboxes"][0]["busy"] == true
    })
    .await
    .unwrap();
    world.shutdown.drain();
    world.shutdown.force();
    let served = tokio::time::timeout(Duration::from_secs(20), world.server).await;
    served.expect("the server ends").unwrap().unwrap();
    assert!(upload.await.unwrap().is_err());
}
