//! Requests that two readers could read in two ways (T63), and other protocols (T67).

use sandbank_test_support::{TestDaemon, skip_unless_root};

use crate::SANDBANK;
use crate::wire::{answers, exchange, status, until_closed};

/// What a smuggler wants to be answered, too.
const SECOND: &str = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn post(head: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{body}{SECOND}").into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_two_meanings_is_answered_400_once_and_the_connection_closed()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let refused: Vec<(&str, Vec<u8>)> = vec![
        (
            "length, then chunks",
            post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ),
        (
            "chunks, then length",
            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
        ),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 40\r\n", "{}")),
        ("a list of lengths", post("Content-Length: 2, 2\r\n", "{}")),
        ("a signed length", post("Content-Length: +2\r\n", "{}")),
        ("a negative length", post("Content-Length: -2\r\n", "{}")),
        ("a hexadecimal length", post("Content-Length: 0x2\r\n", "{}")),
        ("a length of 2^64", post("Content-Length: 18446744073709551616\r\n", "{}")),
        (
            "chunks twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ),
        ("chunks of chunks", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")),
        ("compressed chunks", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")),
        ("chunks that are not last", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")),
        ("a space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")),
        ("a vertical tab", post("Transfer-Encoding: \u{b}chunked\r\n", "0\r\n\r\n")),
        ("a folded header", post("X: a\r\n b\r\n", "")),
        ("a folded coding", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")),
        ("a NUL in a header", post("X: a\0b\r\n", "")),
        ("a bare CR in a header", post("X: a\rY: b\r\n", "")),
        ("a header without a name", post(": x\r\n", "")),
        ("a line end in a chunk's extension", post(chunked, "2;a\nb\r\n{}\r\n0\r\n\r\n")),
        ("a bare line end after a chunk's size", post(chunked, "2\n{}\n0\n\n")),
        ("a negative chunk", post(chunked, "-2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk in hexadecimal notation", post(chunked, "0x2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk of 2^72", post(chunked, "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
        ("a chunk without its end", post(chunked, "2\r\n{}0\r\n\r\n")),
        (
            "chunks in HTTP/1.0",
            format!(
                "POST /v1/sandboxes HTTP/1.0\r\nHost: localhost\r\n{chunked}\r\n0\r\n\r\n{SECOND}"
            )
            .into(),
        ),
        ("HTTP/1.2", format!("GET /v1/health HTTP/1.2\r\nHost: localhost\r\n\r\n{SECOND}").into()),
        ("no version", format!("GET /v1/health\r\n{SECOND}").into()),
    ];
    for (what, bytes) in refused {
        let answer = until_closed(&daemon, &bytes).await;
        assert_eq!((status(&answer), answers(&answer)), (400, 1), "{what}: {answer:?}");
    }
    let extension = format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "a".repeat(1 << 20));
    let answer = until_closed(&daemon, &post(chunked, &extension)).await;
    assert!(answer.is_empty() || status(&answer) == 400, "a long extension: {answer:?}");
    assert!(daemon.api()?.sandboxes().await?.is_empty(), "nothing was made on the way");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_one_meaning_are_each_answered_once() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let twice: Vec<(&str, Vec<u8>)> = vec![
        ("a length", post("Content-Length: 2\r\n", "{}")),
        // RFC 9110 lets the same length be repeated.
        ("the same length twice", post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")),
        ("chunks", post(chunked, "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")),
        ("other letters", post("tRANSFER-eNCODING:\tChUnKeD\r\n", "2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk with an extension", post(chunked, "2;a=b\r\n{}\r\n0;x\r\n\r\n")),
        (
            "trailers are no headers",
            post(chunked, "2\r\n{}\r\n0\r\nContent-Length: 50\r\nHost: evil\r\n\r\n"),
        ),
        // RFC 9112 lets a line end in a bare LF; there is one reading of it here.
        (
            "bare line ends",
            format!(
                "POST /v1/sandboxes HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{{}}{SECOND}"
            )
            .into(),
        ),
    ];
    for (what, bytes) in twice {
        let answer = exchange(&daemon, &bytes).await;
        assert_eq!((status(&answer), answers(&answer)), (400, 2), "{what}: {answer:?}");
        assert!(answer.contains("session_key_required"), "{what}: {answer:?}");
        assert!(answer.contains("\"ok\":true"), "{what}: the second is answered: {answer:?}");
    }
    // A body that looks like a request is a body.
    let hidden = format!(
        "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{SECOND}",
        SECOND.len()
    );
    assert_eq!(answers(&exchange(&daemon, hidden.as_bytes()).await), 1);
    // HTTP/1.0 is spoken, one request at a time.
    let old = format!("GET /v1/health HTTP/1.0\r\nHost: localhost\r\n\r\n{SECOND}");
    let answer = until_closed(&daemon, old.as_bytes()).await;
    assert_eq!((status(&answer), answers(&answer)), (200, 1), "{answer:?}");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_http_1_is_spoken_and_nothing_is_upgraded() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    let answer = until_closed(&daemon, preface).await;
    assert!(answer.is_empty() || status(&answer) >= 400, "{answer:?}");
    let answer = until_closed(&daemon, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    assert!(answer.is_empty() || status(&answer) == 400, "{answer:?}");
    for upgrade in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    ] {
        let request = format!("GET /v1/health HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n");
        let answer = exchange(&daemon, request.as_bytes()).await;
        assert_eq!(status(&answer), 200, "{upgrade}: {answer:?}");
    }
    for (request, expected) in [
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n", [401, 404]),
        ("TRACE /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", [401, 404]),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", [401, 404]),
        ("GET http://evil.example/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", [400, 421]),
        ("GET http://u@localhost/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", [400, 421]),
        ("GET http://localhost/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", [200, 200]),
    ] {
        let status = status(&exchange(&daemon, request.as_bytes()).await);
        assert!(expected.contains(&status), "{request:?} gave {status}");
    }
    daemon.finish().await
}
