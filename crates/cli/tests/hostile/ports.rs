//! Published ports are raw tunnels to one listed port (T68, T69, T70).

use std::time::Duration;

use sandbank_test_support::{Api, TestDaemon, skip_unless_root, wait_for};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::SANDBANK;

async fn publish(api: &Api, id: &str, port: &str) -> anyhow::Result<(u16, Value)> {
    api.try_call("GET", &format!("/v1/sandboxes/{id}/ports/{port}"), None).await
}

/// What comes back through a published port.
async fn through(port: u64, request: &[u8]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port)?)).await?;
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Says what it was sent, word for word, and redirects.
const ECHO: &str = r#"
import socket
server = socket.create_server(('127.0.0.1', 3000))
while True:
    client, _ = server.accept()
    text = client.recv(65536)
    head = b'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/elsewhere\r\nSet-Cookie: a=b\r\n'
    client.sendall(head + b'Content-Length: %d\r\nConnection: close\r\n\r\n' % len(text) + text)
    client.close()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_port_reaches_the_listed_one_of_its_sandbox_and_carries_bytes_unchanged()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body =
        json!({ "sessionKey": "ports", "network": { "mode": "none" }, "ports": [3000, 3001] });
    let id = api.create_with(body).await?;
    let other = api.create("other").await?;
    api.write(&id, "/workspace/echo.py", ECHO.as_bytes()).await?;
    api.start(&id, json!({ "argv": ["python3", "echo.py"] })).await?;
    for (port, expected) in [
        ("3002", 200),
        ("0", 200),
        ("65536", 200),
        ("99999999999999999999", 200),
        ("+3000", 404),
        ("-3000", 404),
        ("3000.0", 404),
        ("0x0bb8", 404),
        ("%33000x", 404),
        ("3000%00", 404),
        ("3000@127.0.0.1", 404),
        ("127.0.0.1:3000", 404),
        ("%2F%2Fhost", 404),
        ("\u{ff13}000", 404),
    ] {
        let (status, answer) = publish(&api, &id, port).await?;
        assert_eq!(status, expected, "{port}: {answer}");
        assert_ne!(answer["found"], json!(true), "{port}: {answer}");
    }
    assert_eq!(publish(&api, &other, "3000").await?.1["found"], json!(false), "not its port");
    let listed = api.call("GET", &format!("/v1/sandboxes/{id}/ports"), None).await?;
    assert_eq!(listed["published"], json!([]), "nothing was opened on the way");

    let (_, published) = publish(&api, &id, "3000").await?;
    let host_port = published["hostPort"].as_u64().unwrap();
    let request = format!(
        "GET //host@evil/../x HTTP/1.1\r\nHost: whoever\r\nX-Forwarded-For: 1.2.3.4\r\n\
         Cookie: a=b\r\nConnection: x\r\nX-Id: {id}\r\n\r\n"
    );
    wait_for("the server inside", Duration::from_secs(20), || async {
        through(host_port, request.as_bytes()).await.is_ok_and(|text| text.contains(" 302 "))
    })
    .await?;
    let answer = through(host_port, request.as_bytes()).await?;
    let (head, inside_saw) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(inside_saw, request, "nothing was added, removed or changed on the way in");
    assert!(!answer.contains(&daemon.token()?));
    assert!(head.contains("Location: http://127.0.0.1:1/elsewhere"), "relayed, not followed");

    let (_, closed) = publish(&api, &id, "3001").await?;
    let answer = through(closed["hostPort"].as_u64().unwrap(), b"GET / HTTP/1.1\r\n\r\n").await?;
    assert!(answer.starts_with("HTTP/1.1 502 "), "a closed port: {answer}");
    daemon.finish().await
}
