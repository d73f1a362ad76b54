//! Clients that are slow, or many: they are cut at the limit and the others are served
//! (T22, T66, T74).

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use sandbank_test_support::{TestDaemon, skip_unless_root, wait_for};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::SANDBANK;
use crate::json_bodies::resident_kib;
use crate::wire::{connect, envelope, port, rest};

#[tokio::test(flavor = "multi_thread")]
async fn slow_heads_and_bodies_are_cut_off_while_others_are_served() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_HEADER_TIMEOUT_MS", "1000"), ("SANDBANK_BODY_TIMEOUT_MS", "1000")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let id = daemon.api()?.create("slow").await?;
    let token = daemon.token()?;
    let put = format!(
        "PUT /v1/sandboxes/{id}/files?path=f HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {token}\r\nContent-Length: 100\r\n\r\nx"
    );
    let starts: [&[u8]; 6] = [
        b"",
        b"G",
        b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5",
        put.as_bytes(),
    ];
    let mut slow = Vec::new();
    for start in starts.iter().cycle().take(120) {
        let mut stream = connect(&daemon).await;
        stream.write_all(start).await?;
        slow.push((stream, start));
    }
    // A new connection each: one that stood idle for a second may be closed as it is used again.
    let served = daemon.api()?.run(&id, "echo served").await?.1;
    assert_eq!(served, "served\n", "the others are served");
    for (mut stream, start) in slow {
        // One that has never sent a byte may be kept as an idle connection; this one is cut, too.
        let answer = rest(&mut stream).await;
        let cut = answer.is_empty() || answer.starts_with("HTTP/1.1 408");
        assert!(cut, "{:?} got {answer:?}", String::from_utf8_lossy(start));
    }
    let (_, listed, _) = daemon.api()?.run(&id, "ls -A").await?;
    assert_eq!(listed, "", "half an upload is nothing");
    daemon.finish().await
}

/// A head that drips one byte at a time must be cut as well as one that stops.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_cut_off() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [("SANDBANK_HEADER_TIMEOUT_MS", "1000")];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let stream = connect(&daemon).await;
    let (mut from, mut to) = stream.into_split();
    let drip = async {
        let mut beat = tokio::time::interval(Duration::from_millis(100));
        let mut next = &b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: "[..];
        while to.write_all(next).await.is_ok() {
            next = b"x";
            beat.tick().await;
        }
    };
    let mut answer = Vec::new();
    let read = async { from.read_to_end(&mut answer).await };
    let cut = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::select! { _ = drip => {}, _ = read => {} }
    });
    cut.await.expect("a dripping head keeps its connection");
    daemon.finish().await
}

/// The binary with few descriptors, for good.
fn with_few_descriptors(directory: &std::path::Path) -> anyhow::Result<std::path::PathBuf> {
    let wrapper = directory.join("few-descriptors");
    std::fs::write(&wrapper, format!("#!/bin/sh\nulimit -n 256\nexec {SANDBANK} \"$@\"\n"))?;
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
    Ok(wrapper)
}

/// How often the log says that there are none left.
fn refusals(daemon: &TestDaemon) -> usize {
    let log = std::fs::read_to_string(daemon.log_path()).unwrap();
    log.matches("no connections can be accepted").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_nothing_crashes_and_connections_are_accepted_again()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let daemon = TestDaemon::start(with_few_descriptors(directory.path())?).await?;
    let pid = daemon.pid().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    assert!(
        limits.lines().any(|line| line.starts_with("Max open files") && line.contains(" 256 "))
    );
    let api = daemon.api()?;
    let id = api.create("few").await?;
    let mut held = Vec::new();
    for _ in 0..400 {
        // The kernel accepts them; the daemon cannot.
        held.push(TcpStream::connect(("127.0.0.1", port(&daemon))).await?);
    }
    wait_for("the descriptors to be used up", Duration::from_secs(20), || async {
        refusals(&daemon) > 0
    })
    .await?;
    drop(held);
    wait_for("connections to be accepted again", Duration::from_secs(20), || async {
        daemon.api().unwrap().try_call("GET", "/v1/sandboxes", None).await.is_ok()
    })
    .await?;
    assert_eq!(api.run(&id, "echo alive").await?.1, "alive\n");
    assert_eq!(daemon.pid(), Some(pid), "it is the same process");
    let told = refusals(&daemon);
    assert!(told <= 2, "the log says it {told} times");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_answer_429_with_a_time_to_wait_and_a_forged_address_does_not_help()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let settings = [
        ("SANDBANK_REQUESTS_PER_SECOND", "1"),
        ("SANDBANK_REQUEST_BURST", "40"),
        ("SANDBANK_MAX_SANDBOXES", "2"),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let api = daemon.api()?;
    for key in ["a", "b"] {
        let id = api.create(key).await?;
        api.bash(&id, "sleep 60").await?;
    }
    let body = json!({ "sessionKey": "c", "network": { "mode": "none" } });
    let third = api.request("POST", "/v1/sandboxes").json(&body).send().await?;
    assert_eq!(third.status(), 429);
    assert!(third.headers()["retry-after"].to_str()?.parse::<u64>()? >= 1);
    assert_eq!(envelope(&third.text().await?)["retryable"], true);

    let http = reqwest::Client::new();
    let health = format!("{}/v1/health", daemon.url());
    let mut refused = None;
    for number in 0..60 {
        let forged = format!("10.0.0.{number}");
        let request = http.get(&health).header("x-forwarded-for", &forged);
        let request =
            request.header("forwarded", format!("for={forged}")).header("x-real-ip", &forged);
        let response = request.send().await?;
        if response.status() == 429 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("a forged address is a fresh share of requests");
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(envelope(&refused.text().await?)["code"], "rate_limited");
    let with_token = api.try_call("GET", "/v1/sandboxes", None).await?;
    assert_eq!(with_token.0, 200, "a token has a share of its own");
    // Stopping takes several requests; they must not run into the limit under test.
    wait_for("the share to fill up", Duration::from_secs(30), || async {
        api.delete_all().await.is_ok()
    })
    .await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_gigabytes_of_nothing_are_read_in_ranges_and_flat_memory() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    const SIZE: u64 = 10 << 30;
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("sparse").await?;
    let script = format!(
        "truncate -s {SIZE} big && printf end | dd of=big bs=1 seek={} conv=notrunc 2>&1",
        SIZE - 3
    );
    let (code, _, out) = api.run(&id, &script).await?;
    assert_eq!(code, 0, "{out}");
    let path = format!("/v1/sandboxes/{id}/files?path=big");
    for (range, place, content) in [
        (format!("bytes={}-", SIZE - 3), format!("bytes {}-{}/{SIZE}", SIZE - 3, SIZE - 1), "end"),
        ("bytes=-3".to_owned(), format!("bytes {}-{}/{SIZE}", SIZE - 3, SIZE - 1), "end"),
        (
            format!("bytes={}-{}", SIZE - 4, SIZE + 9),
            format!("bytes {}-{}/{SIZE}", SIZE - 4, SIZE - 1),
            "\0end",
        ),
        ("bytes=5-6".to_owned(), format!("bytes 5-6/{SIZE}"), "\0\0"),
    ] {
        let response = api.request("GET", &path).header("range", &range).send().await?;
        assert_eq!(response.status(), 206, "{range}");
        assert_eq!(response.headers()["content-range"], place.as_str());
        assert_eq!(response.text().await?, content, "{range}");
    }
    let beyond = api.request("GET", &path).header("range", format!("bytes={SIZE}-")).send().await?;
    assert_eq!(beyond.status(), 416);
    let read = format!("/v1/sandboxes/{id}/files:read?path=/workspace/big");
    let (status, body) = api.try_call("GET", &read, None).await?;
    assert_eq!((status, &body["code"]), (413, &json!("file_too_large")));

    let before = resident_kib(daemon.pid().unwrap());
    let mut whole = api.request("GET", &path).send().await?;
    assert_eq!(whole.headers()["content-length"], SIZE.to_string().as_str());
    let mut seen = 0;
    while seen < 256 << 20 {
        seen += whole.chunk().await?.expect("there is more").len();
    }
    drop(whole);
    let grown = resident_kib(daemon.pid().unwrap()).saturating_sub(before);
    assert!(grown < 64 << 10, "the daemon grew by {grown} KiB over {seen} bytes");
    assert_eq!(api.run(&id, "echo alive").await?.1, "alive\n", "after a reader that left");
    daemon.finish().await
}
