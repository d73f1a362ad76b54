//! Published ports: every bind address, network none, WebSocket and SSE.

use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

/// Answers an upgrade by echoing, anything else with three server-sent events.
const SERVER: &str = r#"
import socket, sys, threading, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.socket(family, socket.SOCK_STREAM)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen(16)
def serve(peer):
    head = b""
    while b"\r\n\r\n" not in head:
        head += peer.recv(4096)
    if b"Upgrade: websocket" in head:
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while True:
            data = peer.recv(4096)
            if not data:
                break
            peer.sendall(data)
    else:
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for n in range(3):
            peer.sendall(b"data: event %d\n\n" % n)
            time.sleep(0.2)
    peer.close()
while True:
    peer, _ = listener.accept()
    threading.Thread(target=serve, args=(peer,), daemon=True).start()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn any_bind_address_is_reached_with_no_network_at_all() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let ports = json!([5001, 5002, 5003, 5004]);
    let body = json!({ "sessionKey": "ports", "network": { "mode": "none" }, "ports": ports });
    let id = api.create_with(body).await?;
    api.write(&id, "/vercel/sandbox/workspace/server.py", SERVER.as_bytes()).await?;
    for (address, port) in [("127.0.0.1", 5001), ("0.0.0.0", 5002), ("::1", 5003)] {
        api.bash(&id, &format!("exec python3 server.py {address} {port}")).await?;
        let published = api.call("GET", &format!("/v1/sandboxes/{id}/ports/{port}"), None).await?;
        let url = published["url"].as_str().unwrap().to_owned();
        wait_for(&format!("events from {address}"), Duration::from_secs(20), || async {
            let Ok(answer) = reqwest::get(&url).await else { return false };
            answer.text().await.is_ok_and(|text| text.contains("event 2"))
        })
        .await?;
    }

    let published = api.call("GET", &format!("/v1/sandboxes/{id}/ports/5001"), None).await?;
    let host_port = u16::try_from(published["hostPort"].as_u64().unwrap())?;
    let mut socket = TcpStream::connect(("127.0.0.1", host_port)).await?;
    socket
        .write_all(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        )
        .await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    for frame in [&b"\x81\x05hello"[..], b"\x82\x03\x00\x01\x02"] {
        socket.write_all(frame).await?;
        let mut echo = vec![0; frame.len()];
        socket.read_exact(&mut echo).await?;
        assert_eq!(echo, frame);
    }

    // Nothing listens on 5004: the connection ends at once instead of hanging.
    let closed = api.call("GET", &format!("/v1/sandboxes/{id}/ports/5004"), None).await?;
    let url = closed["url"].as_str().unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), reqwest::get(url)).await?;
    assert!(answer.map_or(true, |a| a.status().as_u16() == 502));
    daemon.finish().await
}
