//! Searches of the workspace through the API.

use serde_json::{Value, json};

use crate::world::{World, code, refusal, refused};

async fn lines(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn names_and_text_are_found_and_the_last_line_is_the_end() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let plant = "mkdir -p src .git; echo target > .gitignore; mkdir target
        printf 'one\\nneedle two\\n' | tee src/Main.rs target/gen.rs > .hidden";
    world.api.run(&id, plant).await.unwrap();
    let names = format!("/v1/sandboxes/{id}/search:names?pattern=main");
    let found = lines(world.api.request("GET", &names).send().await.unwrap()).await;
    assert_eq!(found[0], json!({ "path": "src/Main.rs", "kind": "file" }));
    assert_eq!((found.len(), &found[1]["end"]["matches"]), (2, &json!(1)));
    assert_eq!(found[1]["end"]["reason"], Value::Null);
    let route = format!("/v1/sandboxes/{id}/search:text");
    let text = |body: Value| world.api.request("POST", &route).json(&body);
    let found = text(json!({ "pattern": "ne+dle", "before": 1 })).send().await.unwrap();
    let found = lines(found).await;
    let path = "src/Main.rs";
    assert_eq!(
        found[..2],
        [
            json!({ "context": { "path": path, "line": 1, "offset": 0, "text": "one" } }),
            json!({ "match": { "path": path, "line": 2, "offset": 4, "text": "needle two",
                "ranges": [[0, 6]] } }),
        ]
    );
    assert_eq!((found.len(), &found[2]["end"]["filesMatched"]), (3, &json!(1)));
    let all = json!({ "pattern": "needle", "hidden": true, "ignored": true, "limit": 2 });
    let found = lines(text(all).send().await.unwrap()).await;
    assert_eq!(found.len(), 3);
    assert_eq!(found[2]["end"]["reason"], "limit");
}

#[tokio::test]
async fn a_search_that_is_not_understood_is_refused_with_what_to_do() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let route = format!("/v1/sandboxes/{id}/search:text");
    let text = |body: Value| world.api.request("POST", &route).json(&body);
    let answer = text(json!({ "pattern": "a(b" })).send().await.unwrap();
    let (status, said, body) = refusal(answer).await;
    assert_eq!((status.as_u16(), said.as_str()), (400, "invalid"));
    assert!(body["error"].as_str().unwrap().contains("unclosed group, at byte 1"), "{body}");
    assert!(body["hint"].as_str().unwrap().contains("literal"), "{body}");
    for body in [
        json!({}),
        json!({ "pattern": "a", "regex": true }),
        json!({ "pattern": "a", "case": "upper" }),
        json!({ "pattern": "a", "globs": ["["] }),
        json!({ "pattern": "a", "path": "../x" }),
    ] {
        assert_eq!(refused(text(body.clone())).await.0, 400, "{body}");
    }
    assert_eq!(
        refused(text(json!({ "pattern": "a", "path": "no" }))).await,
        code(404, "not_found")
    );
    for query in ["", "?pattern=", "?pattern=a&kind=x", "?pattern=(&kind=regex", "?pattern=a&x=1"] {
        let path = format!("/v1/sandboxes/{id}/search:names{query}");
        assert_eq!(refused(world.api.request("GET", &path)).await.0, 400, "{query}");
    }
}
