//! The breaker before a workspace on another machine, as it is seen from outside.

use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::far::Far;
use crate::world::World;

/// Opening takes five seconds of failures; it stays open for thirty.
const PATIENCE: Duration = Duration::from_secs(90);

async fn answer(world: &World, path: &str) -> (u16, Value) {
    let response = world.api.request("GET", path).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn tree(world: &World) -> (u16, String) {
    let (status, body) = answer(world, "/api/tree?path=.").await;
    (status, body["detail"].as_str().unwrap_or_default().to_owned())
}

/// Asks for as long as it is tried.
pub(crate) async fn opens(world: &World) {
    let is_open = || async {
        let (status, said) = tree(world).await;
        assert_eq!(status, 503, "{said}");
        said.starts_with("Workspace unavailable: breaker_open")
    };
    wait_for("the breaker opens", PATIENCE, is_open).await.unwrap();
}

/// `/readyz`, once the workspace's check says this.
async fn ready(world: &World, service: &str) -> (u16, Value) {
    let is_seen = || async {
        let (_, ready) = answer(world, "/readyz").await;
        ready["checks"]["workspace_service"]["message"].as_str().unwrap().starts_with(service)
    };
    wait_for(service, PATIENCE, is_seen).await.unwrap();
    answer(world, "/readyz").await
}

#[tokio::test]
async fn a_breaker_that_opened_is_seen_and_closes_again_when_the_service_is_back() {
    let mut far = Far::start().await;
    let world = far.world("60").await;
    assert_eq!(tree(&world).await.0, 200);
    let (status, before) = ready(&world, "its runner answers").await;
    assert_eq!(
        (status, &before["checks"]["workspace_breaker"]["message"]),
        (200, &json!("closed"))
    );
    far.carry(false).await;
    opens(&world).await;
    let tries = far.tries();
    for _ in 0..20 {
        assert_eq!(tree(&world).await.0, 503);
    }
    assert_eq!(far.tries(), tries, "while it is open, nothing is tried");
    // It is there again, and nobody looks before the time is over.
    far.carry(true).await;
    let (status, said) = tree(&world).await;
    assert_eq!(status, 503, "{said}");
    let (status, open) = ready(&world, "breaker_open: ").await;
    assert_eq!((status, &open["status"]), (503, &json!("not_ready")), "{open}");
    let breaker = json!({ "status": "unhealthy", "critical": false, "message": "open" });
    assert_eq!(open["checks"]["workspace_breaker"], breaker);

    let is_back = || async { tree(&world).await.0 == 200 };
    wait_for("the workspace is back", PATIENCE, is_back).await.unwrap();
    let (status, closed) = ready(&world, "its runner answers").await;
    assert_eq!((status, &closed["status"]), (200, &json!("ready")), "{closed}");
    let breaker = json!({ "status": "healthy", "critical": false, "message": "closed" });
    assert_eq!(closed["checks"]["workspace_breaker"], breaker);
    assert_eq!(answer(&world, "/healthz").await.1["status"], "ok");
    // And it takes as many failures as before to open it.
    far.carry(false).await;
    assert!(tree(&world).await.1.contains("unreachable"));
    far.end().await;
}
