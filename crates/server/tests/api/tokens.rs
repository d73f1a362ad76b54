//! Scoped tokens: what each may do, and that revoking one is effective at once.

use serde_json::json;

use crate::world::{World, code, refused};

async fn token(world: &World, name: &str, scope: &str) -> String {
    let body = json!({ "name": name, "scope": scope });
    let made = world.api.call("POST", "/v1/tokens", Some(body)).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_scope_allows_what_it_says_and_no_more() {
    let world = World::start().await;
    let reader = token(&world, "reader", "read_only").await;
    let maker = token(&world, "maker", "sandbox").await;
    let status = async |token: &str, method: &str, path: &str| {
        let body = "{\"sessionKey\":\"x\"}";
        let request = world.open(method, path).bearer_auth(token).body(body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(&reader, "GET", "/v1/sandboxes").await, 200);
    assert_eq!(
        status(&reader, "POST", "/v1/sandboxes").await,
        403,
        "open on loopback, but not for it"
    );
    assert_eq!(status(&reader, "GET", "/v1/tokens").await, 403);
    assert_eq!(status(&maker, "POST", "/v1/sandboxes").await, 200);
    assert_eq!(status(&maker, "GET", "/v1/tokens").await, 403);
    assert_eq!(status(&maker, "POST", "/v1/images:import").await, 403);
    assert_eq!(status(&world.token, "GET", "/v1/tokens").await, 200);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let world = World::start().await;
    let short = token(&world, "short", "sandbox").await;
    let list = || world.open("GET", "/v1/sandboxes").bearer_auth(&short);
    assert_eq!(list().send().await.unwrap().status(), 200);
    world.api.call("DELETE", "/v1/tokens/short", None).await.unwrap();
    assert_eq!(refused(list()).await, code(401, "unauthorized"));
    let open = world.open("POST", "/v1/sandboxes").bearer_auth(&short).body("{}");
    assert_eq!(refused(open).await, code(401, "unauthorized"), "open on loopback, but not for it");
    let again = world.open("DELETE", "/v1/tokens/short").bearer_auth(&world.token);
    assert_eq!(refused(again).await, code(404, "token_not_found"));
    let listed = world.api.call("GET", "/v1/tokens", None).await.unwrap();
    assert!(listed["tokens"][0]["revokedAtMs"].is_u64(), "{listed}");
    assert!(!listed.to_string().contains(&short));
}

#[tokio::test]
async fn names_are_unique_and_plain() {
    let world = World::start().await;
    token(&world, "one", "sandbox").await;
    let make = |name: &str, scope: &str| {
        let body = json!({ "name": name, "scope": scope });
        world.open("POST", "/v1/tokens").bearer_auth(&world.token).json(&body)
    };
    assert_eq!(refused(make("one", "sandbox")).await, code(409, "conflict"));
    for name in ["a b", "", ".", "..", "-x", "a/b", &"x".repeat(65)] {
        assert_eq!(refused(make(name, "sandbox")).await, code(400, "bad_token_name"), "{name}");
    }
    assert_eq!(refused(make("two", "root")).await, code(400, "bad_body"));
}
