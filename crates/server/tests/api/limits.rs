//! What happens at the limits: a clear answer with a time to wait, never a hang.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{World, code, refusal, refused};

#[tokio::test]
async fn too_many_requests_are_429_and_forged_headers_do_not_help() {
    let world =
        World::with(&[("server.requests_per_second", "1"), ("server.request_burst", "3")]).await;
    for _ in 0..3 {
        assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
    }
    let forged = world.open("GET", "/v1/health").header("x-forwarded-for", "10.9.8.7");
    let response = forged.send().await.unwrap();
    assert!(response.headers().contains_key("retry-after"));
    let (status, code, body) = refusal(response).await;
    assert_eq!((status.as_u16(), code.as_str()), (429, "rate_limited"));
    assert_eq!(body["retryable"], true);
    let with_token = world.open("GET", "/v1/sandboxes").bearer_auth(&world.token);
    assert_eq!(with_token.send().await.unwrap().status(), 200, "a token has its own share");
}

#[tokio::test]
async fn a_body_above_the_limit_is_413_and_the_server_goes_on() {
    let world = World::with(&[("server.max_body_bytes", "1024")]).await;
    let big = format!("{{\"sessionKey\":\"{}\"}}", "x".repeat(3 << 20));
    let stated = world.open("POST", "/v1/sandboxes").body(big.clone());
    assert_eq!(refused(stated).await, code(413, "body_too_large"));
    let pieces = futures_util::stream::iter(
        big.into_bytes()
            .chunks(64 * 1024)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
            .collect::<Vec<_>>(),
    );
    let chunked = world.open("POST", "/v1/sandboxes").body(reqwest::Body::wrap_stream(pieces));
    assert_eq!(refused(chunked).await, code(413, "body_too_large"));
    assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_slow_head_and_a_slow_body_are_cut_off() {
    let world =
        World::with(&[("server.header_timeout_ms", "200"), ("server.body_timeout_ms", "200")])
            .await;
    let mut slow = TcpStream::connect(world.address).await.unwrap();
    slow.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    let mut slow = TcpStream::connect(world.address).await.unwrap();
    let head = b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    slow.write_all(head).await.unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    assert_eq!(world.open("GET", "/v1/health").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away_with_503() {
    let world = World::with(&[("server.max_connections", "2")]).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut first = [0u8; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        held.push(stream);
    }
    let mut extra = TcpStream::connect(world.address).await.unwrap();
    let mut answer = String::new();
    extra.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    drop(held);
    let health = sandbank_test_support::eventually(
        "a free place",
        std::time::Duration::from_secs(10),
        || async {
            world.open("GET", "/v1/health").send().await.ok().filter(|r| r.status() == 200)
        },
    );
    health.await.unwrap();
}
