//! The wire itself: requests that a lenient server would read in two ways.

use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::breakable::HELD_ARCHIVE;
use crate::world::{World, code, refusal, refused};

/// Everything the server says to these bytes, until it closes.
async fn raw(world: &World, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn unknown_paths_and_methods_are_not_found() {
    let world = World::start().await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/v1"),
        ("PATCH", "/v1/sandboxes"),
        ("PUT", "/v1/health"),
        ("GET", "/v1/sandboxes/x:stop"),
        ("POST", "/v1/sandboxes/x/~stop"),
        ("POST", "/v1/sandboxes/x:explode"),
        ("GET", "/v1//health"),
        ("GET", "/v1/health/"),
    ] {
        let answer = world.open(method, path).send().await.unwrap();
        let (status, code, body) = refusal(answer).await;
        assert_eq!((status.as_u16(), code.as_str()), (404, "route_not_found"), "{method} {path}");
        assert!(body["hint"].as_str().unwrap().contains("/openapi.json"), "{body}");
    }
}

#[tokio::test]
async fn requests_with_two_meanings_are_refused_and_nothing_follows() {
    let world = World::start().await;
    let smuggled = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for head in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 1e3\r\n",
        "X-Odd: a\0b\r\n",
        "X Odd: a\r\n",
        "X-Folded: a\r\n b\r\n",
    ] {
        let request =
            format!("POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{smuggled}");
        let answer = raw(&world, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{head:?} gave {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{head:?} gave {answer:?}");
    }
    assert!(world.api.sandboxes().await.unwrap().is_empty());
}

#[tokio::test]
async fn hosts_must_be_stated_once_and_agree() {
    let world = World::start().await;
    for request in [
        "GET /v1/health HTTP/1.1\r\n\r\n",
        "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET http://evil.example/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/health HTTP/1.0\r\n\r\n",
    ] {
        let answer = raw(&world, request.as_bytes()).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, "400", "{request:?} gave {answer:?}");
    }
    let http2 = raw(&world, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!http2.contains("200 OK"), "{http2:?}");
    let absolute = "GET http://localhost/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(raw(&world, absolute.as_bytes()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let world = World::start().await;
    let endless =
        format!("GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(300_000));
    let answer = raw(&world, endless.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer:?}");
    assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_inert_headers() {
    let world = World::start().await;
    let own = world.open("GET", "/v1/health").header("x-request-id", "abc-1").send().await.unwrap();
    assert_eq!(own.headers()["x-request-id"], "abc-1");
    assert_eq!(own.headers()["cache-control"], "no-store");
    assert_eq!(own.headers()["content-type"], "application/json; charset=utf-8");
    let body: Value = own.json().await.unwrap();
    assert_eq!((&body["ok"], &body["engine"]), (&true.into(), &"process".into()));
    let odd = world.open("GET", "/nothing").header("x-request-id", "a b").send().await.unwrap();
    assert_ne!(odd.headers()["x-request-id"], "a b");
}

#[tokio::test]
async fn an_import_goes_on_when_its_client_leaves() {
    let world = World::start().await;
    let body = format!("{{\"name\":\"held\",\"path\":\"{HELD_ARCHIVE}\"}}");
    let request = format!(
        "POST /v1/images:import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        world.token,
        body.len(),
    );
    let mut client = TcpStream::connect(world.address).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.contains("bytesDone") {
        let mut part = [0; 4096];
        let read = client.read(&mut part).await.unwrap();
        assert!(read > 0, "the server closed after {answer:?}");
        answer.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    client.shutdown().await.unwrap();
    // The server closes its side only when it has dropped the answer.
    let _ = client.read_to_end(&mut Vec::new()).await;
    world.engine.release_import.cancel();
    wait_for("the image", Duration::from_secs(10), || async {
        let images = world.api.call("GET", "/v1/images", None).await.unwrap();
        images["images"].as_array().unwrap().iter().any(|image| image["name"] == "held")
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_import_that_fails_says_so_in_its_last_line() {
    let world = World::start().await;
    let body = serde_json::json!({ "name": "debian", "path": "/nonexistent.tar" });
    let request = world.api.request("POST", "/v1/images:import").json(&body);
    let response = request.send().await.unwrap();
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "progress");
    assert_eq!(
        (&lines[1]["type"], &lines[1]["code"]),
        (&"error".into(), &"image_not_found".into())
    );
    let relative = serde_json::json!({ "name": "debian", "path": "x.tar" });
    let request = world.api.request("POST", "/v1/images:import").json(&relative);
    assert_eq!(refused(request).await, code(400, "invalid_path"));
    let remove = world.api.request("DELETE", "/v1/images/library%2Fdebian%3Abookworm");
    assert_eq!(refused(remove).await, code(404, "image_not_found"));
}

#[tokio::test]
async fn the_host_image_cannot_be_removed_and_the_answer_says_why() {
    let world = World::start().await;
    let remove = world.api.request("DELETE", "/v1/images/host").send().await.unwrap();
    let (status, code, body) = refusal(remove).await;
    assert_eq!((status.as_u16(), code.as_str()), (409, "image_built_in"));
    let said = body["error"].as_str().unwrap();
    assert!(said.contains("always there") && said.contains("cannot be removed"), "{body}");
    assert!(body["hint"].is_string(), "{body}");
}

#[tokio::test]
async fn a_daemon_whose_data_directory_is_gone_is_not_healthy() {
    let world = World::start().await;
    // Before the first look: later ones are believed for a moment.
    std::fs::remove_dir_all(world.data.path()).unwrap();
    wait_for("the first look", Duration::from_secs(10), || async {
        let health = world.open("GET", "/v1/health").send().await.unwrap();
        health.status() == 503
    })
    .await
    .unwrap();
    let health = world.open("GET", "/v1/health");
    assert_eq!(refused(health).await, code(503, "data_dir_unusable"));
    let other = World::start().await;
    let health = other.open("GET", "/v1/health").send().await.unwrap();
    assert_eq!(health.status(), 200);
}

/// The head, more than any socket holds, and then what the server says: as clients do that send
/// all before they listen.
async fn sent_whole(world: &World, head: &str) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..LARGE_BODY_BYTES / (1 << 20) {
        stream.write_all(&vec![b'x'; 1 << 20]).await.expect("the server reads on");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

const LARGE_BODY_BYTES: usize = 32 << 20;

#[tokio::test]
async fn a_client_that_sends_all_before_it_listens_sees_why_it_was_refused() {
    let world = World::start().await;
    for (request, token, status) in [
        ("PUT /v1/sandboxes/none/files?path=a", world.token.as_str(), "404"),
        ("PUT /v1/sandboxes/none/files?path=a", "wrong", "401"),
        ("POST /v1/nowhere", world.token.as_str(), "404"),
    ] {
        let head = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Length: {LARGE_BODY_BYTES}\r\n\r\n"
        );
        let answer = sent_whole(&world, &head).await;
        assert_eq!(answer.split(' ').nth(1), Some(status), "{request} gave {answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_asks_first_is_not_asked_for_a_body_that_is_refused() {
    let world = World::start().await;
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n";
    let answer = raw(&world, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer:?}");
    let wanted = head.replace("/v1/sessions", "/v1/sandboxes").replace("100000", "2");
    let answer = raw(&world, format!("{wanted}{{}}").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 100"), "{answer:?}");
}
