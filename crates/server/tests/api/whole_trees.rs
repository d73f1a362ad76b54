//! Walks, copies, modes and conditional changes.

use serde_json::{Value, json};

use crate::world::{World, code, refused};

async fn lines(world: &World, path: &str) -> Vec<Value> {
    let response = world.api.request("GET", path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_tree_is_told_line_by_line_with_an_end() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkdir -p a/b; echo 1 > a/b/f; echo 2 > a/.g; ln -s b a/l").await.unwrap();
    let base = format!("/v1/sandboxes/{id}/files:tree");
    let told = lines(&world, &format!("{base}?path=a&sort=true&stat=true")).await;
    let paths: Vec<_> = told.iter().filter_map(|line| line["path"].as_str()).collect();
    assert_eq!(paths, ["a/.g", "a/b", "a/l", "a/b/f"]);
    assert_eq!((&told[3]["kind"], &told[3]["size"]), (&json!("file"), &json!(2)));
    assert_eq!(told[2]["target"], "b");
    let end = json!({ "truncated": false, "reason": null, "visited": 4, "unreadable": 0,
        "unreadablePaths": [] });
    assert_eq!(told[4], json!({ "end": end }));
    let few = lines(&world, &format!("{base}?nodes=2&hidden=false")).await;
    let end = &few.last().unwrap()["end"];
    assert_eq!((few.len(), &end["truncated"], &end["reason"]), (3, &json!(true), &json!("nodes")));
    let shallow = lines(&world, &format!("{base}?depth=1")).await;
    assert_eq!((shallow.len(), &shallow[1]["end"]["reason"]), (2, &json!("depth")));
    let tree = |query: &str| world.api.request("GET", &format!("{base}?{query}"));
    assert_eq!(refused(tree("path=none")).await, code(404, "not_found"));
    assert_eq!(refused(tree("path=a/b/f")).await, code(409, "wrong_kind"));
    assert_eq!(refused(tree("path=../x")).await, code(400, "invalid_path"));
    assert_eq!(refused(tree("nodes=0")).await, code(400, "invalid"));
    assert_eq!(refused(tree("nods=1")).await.0, 400);
}

#[tokio::test]
async fn files_and_trees_are_copied_and_their_modes_changed() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkdir -p a/b; echo 1 > a/b/f; ln -s /etc/passwd a/out").await.unwrap();
    let post = async |verb: &str, body: Value| {
        let path = format!("/v1/sandboxes/{id}/files:{verb}");
        world.api.try_call("POST", &path, Some(body)).await.unwrap()
    };
    let (status, copied) = post("copy", json!({ "from": "a", "to": "/workspace/c" })).await;
    assert_eq!((status, &copied["kind"]), (200, &json!("directory")));
    let seen = world.api.run(&id, "cat c/b/f; readlink c/out").await.unwrap().1;
    assert_eq!(seen, "1\n/etc/passwd\n");
    let (status, again) = post("copy", json!({ "from": "a", "to": "c" })).await;
    assert_eq!((status, &again["code"]), (409, &json!("conflict")));
    let file = json!({ "from": "a/b/f", "to": "c/b/f", "overwrite": true });
    assert_eq!(post("copy", file).await.0, 200);
    let (status, into) = post("copy", json!({ "from": "a", "to": "a/b/x" })).await;
    assert_eq!((status, &into["code"]), (400, &json!("invalid")));
    let (status, changed) =
        post("chmod", json!({ "path": "c", "mode": "0700", "recursive": true })).await;
    assert_eq!((status, &changed["mode"]), (200, &json!(0o700)));
    assert_eq!(world.api.run(&id, "stat -c %a c/b/f").await.unwrap().1, "700\n");
    for (body, expected) in [
        (json!({ "path": "c/out", "mode": "777" }), (409, "wrong_kind")),
        (json!({ "path": "c", "mode": "4755" }), (400, "bad_mode")),
        (json!({ "path": "c", "mode": "rwx" }), (400, "bad_mode")),
        (json!({ "path": "../c", "mode": "700" }), (400, "invalid_path")),
        (json!({ "path": "c", "mode": "700", "recursiv": true }), (400, "bad_body")),
    ] {
        let (status, answer) = post("chmod", body).await;
        assert_eq!((status, answer["code"].as_str().unwrap()), expected);
    }
}

#[tokio::test]
async fn a_change_names_the_version_it_expects() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let put = |name: &str, value: &str, body: &'static str| {
        world.api.request("PUT", &path).header(name, value).body(body)
    };
    assert_eq!(refused(put("if-match", "*", "x")).await, code(412, "precondition_failed"));
    let made = put("if-none-match", "*", "12345").send().await.unwrap();
    assert_eq!(made.status(), 200);
    let tag = made.json::<Value>().await.unwrap()["tag"].as_str().unwrap().to_owned();
    let etag = format!("\"{tag}\"");
    let read = world.api.request("GET", &path).send().await.unwrap();
    assert_eq!(read.headers()["etag"], etag.as_str());
    assert_eq!(refused(put("if-none-match", "*", "x")).await, code(412, "precondition_failed"));
    assert_eq!(put("if-match", &etag, "54321").send().await.unwrap().status(), 200);
    assert_eq!(refused(put("if-match", &etag, "x")).await, code(412, "precondition_failed"));
    assert_eq!(refused(put("if-match", "\"other\"", "x")).await, code(412, "precondition_failed"));
    assert_eq!(refused(put("if-match", "f", "x")).await, code(400, "bad_condition"));
    let stale = world.api.request("DELETE", &path).header("if-match", &etag);
    assert_eq!(refused(stale).await, code(412, "precondition_failed"));
    assert_eq!(world.api.run(&id, "cat f; ls -A").await.unwrap().1, "54321f\n");
    let now = world.api.request("GET", &path).send().await.unwrap().headers()["etag"].clone();
    let removed = world.api.request("DELETE", &path).header("if-match", &now).send().await.unwrap();
    assert_eq!(removed.status(), 200);
}

/// Same size, same time: only the version tells.
#[tokio::test]
async fn an_etag_changes_with_a_file_whose_size_and_time_do_not() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let read = async || world.api.request("GET", &path).send().await.unwrap();
    world.api.run(&id, "echo one > f; touch -d @1000000000 f").await.unwrap();
    let before = read().await.headers()["etag"].clone();
    assert_eq!(read().await.headers()["etag"], before);
    world.api.run(&id, "echo two > f; touch -d @1000000000 f").await.unwrap();
    let known = world.api.request("GET", &path).header("if-none-match", &before);
    let known = known.send().await.unwrap();
    assert_eq!((known.status().as_u16(), known.text().await.unwrap().as_str()), (200, "two\n"));
}

#[tokio::test]
async fn a_range_of_a_link_is_one_of_its_file() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "printf 0123456789 > file; ln -s file l").await.unwrap();
    let path = format!("/v1/sandboxes/{id}/files?path=l");
    let part = world.api.request("GET", &path).header("range", "bytes=6-8").send().await.unwrap();
    assert_eq!(part.headers()["content-range"], "bytes 6-8/10");
    assert_eq!(part.text().await.unwrap(), "678");
}
