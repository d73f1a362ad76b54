//! Files in JSON, as sandboxd's clients use them, and the tree.

use serde_json::{Value, json};

use crate::world::{World, code, refused};

#[tokio::test]
async fn files_are_written_together_and_read_back() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let files = json!({ "files": [
        { "path": "/workspace/a.txt", "contentBase64": "aGVsbG8=" },
        { "path": "/home/user/deep/er/b.bin", "contentBase64": "AP/+" },
        { "path": "/workspace/empty", "contentBase64": "" },
    ] });
    let write = world.open("POST", &format!("/v1/sandboxes/{id}/files:write")).json(&files);
    assert_eq!(write.send().await.unwrap().text().await.unwrap(), "{\"ok\":true}");
    let read = async |path: &str| {
        let url = format!("/v1/sandboxes/{id}/files:read?path={path}");
        world.open("GET", &url).send().await.unwrap().json::<Value>().await.unwrap()
    };
    assert_eq!(
        read("/workspace/a.txt").await,
        json!({ "found": true, "contentBase64": "aGVsbG8=" })
    );
    assert_eq!(read("/workspace/deep/er/b.bin").await["contentBase64"], "AP/+");
    assert_eq!(read("/workspace/empty").await, json!({ "found": true, "contentBase64": "" }));
    assert_eq!(read("/workspace/none").await, json!({ "found": false }));
    assert_eq!(world.api.run(&id, "cat a.txt").await.unwrap().1, "hello");
}

#[tokio::test]
async fn refusals_have_sandboxds_words_and_write_nothing() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let write =
        |body: Value| world.open("POST", &format!("/v1/sandboxes/{id}/files:write")).json(&body);
    let file = |path: &str| json!({ "path": path, "contentBase64": "eA==" });
    assert_eq!(refused(write(json!({}))).await, code(400, "files_required"));
    let both = json!({ "files": [file("/workspace/good"), file("/etc/evil")] });
    assert_eq!(refused(write(both)).await, code(400, "outside_workspace"));
    assert_eq!(world.api.run(&id, "ls").await.unwrap().1, "", "nothing was written");
    let read = |path: &str| world.open("GET", &format!("/v1/sandboxes/{id}/files:read{path}"));
    assert_eq!(refused(read("")).await, code(400, "path_required"));
    assert_eq!(refused(read("?path=/etc/passwd")).await, code(400, "outside_workspace"));
    for path in ["/workspace/%2e%2e/x", "/workspace/../x", "/workspace/a%00b"] {
        let request = read(&format!("?path={path}"));
        assert_eq!(refused(request).await, code(400, "invalid_path"), "{path}");
    }
}

#[tokio::test]
async fn special_files_are_refused_without_a_hang() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkdir dir; mkfifo fifo; ln -s /etc/passwd out").await.unwrap();
    for name in ["dir", "fifo", "out"] {
        let path = format!("/v1/sandboxes/{id}/files:read?path=/workspace/{name}");
        let (status, _) = refused(world.open("GET", &path)).await;
        assert!((400..500).contains(&status), "{name} gave {status}");
    }
}

#[tokio::test]
async fn a_file_too_long_for_json_is_413_and_names_the_other_route() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "truncate -s 33M big").await.unwrap();
    let path = format!("/v1/sandboxes/{id}/files:read?path=/workspace/big");
    let response = world.open("GET", &path).send().await.unwrap();
    let (status, code, body) = crate::world::refusal(response).await;
    assert_eq!((status.as_u16(), code.as_str()), (413, "file_too_large"));
    assert!(body["hint"].as_str().unwrap().contains("/files?path="));
}

#[tokio::test]
async fn the_tree_can_be_listed_made_and_moved() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let base = format!("/v1/sandboxes/{id}/files");
    let post = async |verb: &str, body: Value| {
        world.api.try_call("POST", &format!("{base}:{verb}"), Some(body)).await.unwrap()
    };
    let (status, made) = post("mkdir", json!({ "path": "a/b", "parents": true })).await;
    assert_eq!((status, &made["kind"]), (200, &json!("directory")));
    world.api.write(&id, "/workspace/a/f", b"12345").await.unwrap();
    let (status, _) = post("move", json!({ "from": "a/f", "to": "a/b/g" })).await;
    assert_eq!(status, 200);
    let list = world.api.call("GET", &format!("{base}:list?path=a/b"), None).await.unwrap();
    assert_eq!(
        (&list["entries"][0]["name"], &list["entries"][0]["size"]),
        (&json!("g"), &json!(5))
    );
    let stat = world.api.call("GET", &format!("{base}:stat?path=a/b/g"), None).await.unwrap();
    assert_eq!((&stat["kind"], &stat["mode"]), (&json!("file"), &json!(0o644)));
    world.api.call("DELETE", &format!("{base}?path=a&recursive=true"), None).await.unwrap();
    let root = world.api.call("GET", &format!("{base}:list"), None).await.unwrap();
    assert_eq!(root, json!({ "entries": [], "truncated": false }));
    let (status, body) = post("move", json!({ "from": "x" })).await;
    assert_eq!((status, &body["code"]), (400, &json!("bad_body")));
    assert_eq!(post("mkdir", json!({ "path": "../x" })).await.0, 400);
}
