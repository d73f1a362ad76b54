//! The event log.

use sandbank_test_support::eventually;

use crate::world::{SOON, World, settings};

#[tokio::test(flavor = "multi_thread")]
async fn events_tell_a_sandboxs_story_in_order_over_a_restart() {
    let mut world = World::new(settings()).await;
    let (_, mut live) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
    let id = world.create("chat:1").await;
    world.stop(&id).await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|kind| kind != "sandbox.stopped") {
        let event = tokio::time::timeout(SOON, live.recv()).await.unwrap().unwrap();
        assert_eq!(event.sandbox.as_ref(), Some(&id));
        seen.push(event.kind);
    }
    let story = ["sandbox.created", "sandbox.running", "sandbox.stopping", "sandbox.stopped"];
    assert_eq!(seen, story);

    world.restart().await;
    let stored = eventually("the stored events", SOON, || async {
        let (stored, _) = world.run(|daemon| async move { daemon.events(0).await.unwrap() }).await;
        stored.iter().any(|event| event.seq > 5).then_some(stored)
    })
    .await
    .unwrap();
    let numbers: Vec<_> = stored.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=stored.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<_> = stored.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds[1..5], story);
    assert_eq!(kinds[5..], ["daemon.stopped", "daemon.started"]);
    let (later, _) = world.run(|daemon| async move { daemon.events(6).await.unwrap() }).await;
    assert_eq!(later.len(), 1);
}
