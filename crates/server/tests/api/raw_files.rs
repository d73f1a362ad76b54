//! Raw files: streamed both ways, in ranges, replaced as a whole.

use std::time::Duration;

use reqwest::Body;
use sandbank_test_support::wait_for;

use crate::world::{World, code, refused};

async fn put(world: &World, id: &str, query: &str, body: impl Into<Body>) -> reqwest::Response {
    let request = world.api.request("PUT", &format!("/v1/sandboxes/{id}/files?{query}"));
    request.body(body).send().await.unwrap()
}

fn get(world: &World, id: &str, path: &str) -> reqwest::RequestBuilder {
    world.api.request("GET", &format!("/v1/sandboxes/{id}/files?path={path}"))
}

#[tokio::test]
async fn a_large_file_goes_in_and_out_unchanged() {
    let world = World::start().await;
    let id = world.sandbox().await;
    let content: Vec<u8> = (0..20_000_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let stat = put(&world, &id, "path=big&mode=0600", content.clone()).await;
    let stat: serde_json::Value = stat.json().await.unwrap();
    assert_eq!((&stat["size"], &stat["mode"]), (&content.len().into(), &0o600.into()));
    let response = get(&world, &id, "big").send().await.unwrap();
    assert_eq!(response.headers()["content-length"], content.len().to_string().as_str());
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert!(response.bytes().await.unwrap() == content, "the content differs");
}

#[tokio::test]
async fn ranges_are_served_and_resumed_by_version() {
    let world = World::start().await;
    let id = world.sandbox().await;
    put(&world, &id, "path=f", "0123456789").await;
    for (range, place, content) in [
        ("bytes=0-3", "bytes 0-3/10", "0123"),
        ("bytes=4-", "bytes 4-9/10", "456789"),
        ("bytes=-2", "bytes 8-9/10", "89"),
        ("bytes=8-99", "bytes 8-9/10", "89"),
    ] {
        let response = get(&world, &id, "f").header("range", range).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-range"]),
            (206, &place.parse().unwrap())
        );
        assert_eq!(response.text().await.unwrap(), content);
    }
    let beyond = get(&world, &id, "f").header("range", "bytes=10-").send().await.unwrap();
    assert_eq!(
        (beyond.status().as_u16(), &beyond.headers()["content-range"]),
        (416, &"bytes */10".parse().unwrap())
    );
    let etag = get(&world, &id, "f").send().await.unwrap().headers()["etag"].clone();
    let known = get(&world, &id, "f").header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(known.status(), 304);
    let same = get(&world, &id, "f").header("range", "bytes=0-0").header("if-range", &etag);
    assert_eq!(same.send().await.unwrap().status(), 206);
    put(&world, &id, "path=f", "changed").await;
    let changed = get(&world, &id, "f").header("range", "bytes=0-0").header("if-range", &etag);
    let changed = changed.send().await.unwrap();
    assert_eq!(
        (changed.status().as_u16(), changed.text().await.unwrap().as_str()),
        (200, "changed")
    );
}

#[tokio::test]
async fn head_tells_size_and_version_without_the_bytes() {
    let world = World::start().await;
    let id = world.sandbox().await;
    put(&world, &id, "path=f", "0123456789").await;
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let head = world.api.request("HEAD", &path).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-length"]),
        (200, &"10".parse().unwrap())
    );
    assert_eq!(head.headers()["accept-ranges"], "bytes");
    let get = get(&world, &id, "f").send().await.unwrap();
    assert_eq!(head.headers()["etag"], get.headers()["etag"]);
    let none = format!("/v1/sandboxes/{id}/files?path=none");
    assert_eq!(world.api.request("HEAD", &none).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn bytes_can_be_written_into_a_file() {
    let world = World::start().await;
    let id = world.sandbox().await;
    put(&world, &id, "path=f", "0123456789").await;
    assert_eq!(put(&world, &id, "path=f&offset=4", "xy").await.status(), 200);
    assert_eq!(get(&world, &id, "f").send().await.unwrap().text().await.unwrap(), "0123xy6789");
}

#[tokio::test]
async fn an_upload_that_breaks_off_changes_nothing() {
    let world = World::with(&[("server.body_timeout_ms", "200")]).await;
    let id = world.sandbox().await;
    put(&world, &id, "path=f", "old").await;
    let start = futures_util::stream::iter([Ok::<_, std::io::Error>("new".to_owned())]);
    let stalled = futures_util::StreamExt::chain(start, futures_util::stream::pending());
    let path = format!("/v1/sandboxes/{id}/files?path=f");
    let request = world.api.request("PUT", &path).body(Body::wrap_stream(stalled));
    assert_eq!(refused(request).await, code(408, "body_too_slow"));
    assert_eq!(get(&world, &id, "f").send().await.unwrap().text().await.unwrap(), "old");
    wait_for("the draft to go", Duration::from_secs(10), || async {
        world.api.run(&id, "ls -A").await.unwrap().1 == "f\n"
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused() {
    let world = World::start().await;
    let id = world.sandbox().await;
    world.api.run(&id, "mkdir dir; mkfifo fifo").await.unwrap();
    for name in ["dir", "fifo"] {
        assert_eq!(refused(get(&world, &id, name)).await, code(409, "wrong_kind"), "{name}");
    }
    assert_eq!(refused(get(&world, &id, "none")).await, code(404, "not_found"));
    assert_eq!(refused(get(&world, &id, "")).await, code(400, "path_required"));
    let put = world.api.request("PUT", &format!("/v1/sandboxes/{id}/files?path=f&mode=9"));
    assert_eq!(refused(put.body("x")).await, code(400, "bad_mode"));
}
