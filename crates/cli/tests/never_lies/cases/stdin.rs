//! Input by offset.

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::place::{LIMIT, Place};

const SIZE: u64 = 100_000_000;
const CHUNK: u64 = 250_000;

/// Blocks of a prime length: a shift by any power of two would be noticed.
fn part(from: u64, to: u64) -> Bytes {
    const BLOCK: usize = 251;
    let block: Vec<u8> = (0..BLOCK as u8).collect();
    let (start, length) = (from as usize % BLOCK, (to - from) as usize);
    let blocks = block.repeat(length / BLOCK + 2);
    Bytes::from(blocks).slice(start..start + length)
}

/// A body from `from` that breaks the connection off before `cut`, if there is a cut.
fn body(from: u64, cut: Option<u64>) -> reqwest::Body {
    let end = cut.unwrap_or(SIZE);
    let chunks = (from..end).step_by(CHUNK as usize);
    let chunks = chunks.map(move |at| Ok(part(at, (at + CHUNK).min(end))));
    let broken = cut.map(|_| Err(io::Error::other("the cable was pulled")));
    reqwest::Body::wrap_stream(stream::iter(chunks).chain(stream::iter(broken)))
}

pub(super) async fn lost_connections(place: Place) -> anyhow::Result<()> {
    let command = place.start(json!({ "argv": ["sha256sum"], "stdin": "open" })).await?;
    let route = format!("{}/stdin", place.route(&command));
    let feed = |from: u64, cut: Option<u64>| {
        let request =
            place.api.request("POST", &format!("{route}?offset={from}&eof={}", cut.is_none()));
        request.body(body(from, cut)).send()
    };
    let accepted = || async {
        let status = place.status(&command).await?;
        status["stdinOffset"].as_u64().ok_or_else(|| anyhow::anyhow!("{status}"))
    };
    for cut in [1, 3_000_001, 20_000_000, 20_000_001, 61_234_567] {
        let from = accepted().await?;
        assert!(feed(from, Some(cut.max(from + 1))).await.is_err(), "the connection was cut");
    }
    // Two that do not know of each other, one of them far behind.
    let behind = accepted().await?.saturating_sub(5_000_000);
    let twice = async { tokio::join!(feed(behind, None), feed(behind + 1_000_000, None)) };
    let (one, other) = tokio::time::timeout(LIMIT * 3, twice).await?;
    for answer in [one?, other?] {
        let status = answer.status().as_u16();
        let text = answer.text().await?;
        assert_eq!(status, 200, "{text}");
        let reply: serde_json::Value = serde_json::from_str(&text)?;
        assert_eq!(reply, json!({ "nextOffset": SIZE, "closed": true }));
    }
    let heard = place.hear(&command).await?;
    let whole = tokio::task::spawn_blocking(|| sha256(&part(0, SIZE))).await??;
    assert_eq!((heard.text(), heard.exit_code), (whole, Some(0)));
    Ok(())
}

fn sha256(bytes: &[u8]) -> anyhow::Result<String> {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        io::Write::write_all(&mut stdin, bytes)?;
    }
    Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
}

pub(super) async fn gap(place: Place) -> anyhow::Result<()> {
    let command = place.start(json!({ "argv": ["cat"], "stdin": "open" })).await?;
    let feed = |offset: u64, eof: bool, text: &'static str| {
        let route = format!("{}/stdin?offset={offset}&eof={eof}", place.route(&command));
        place.api.request("POST", &route).body(text).send()
    };
    assert_eq!(feed(0, false, "abc").await?.status(), 200);
    assert_eq!(feed(4, true, "never").await?.status(), 409);
    assert_eq!(place.status(&command).await?["stdinOffset"], json!(3));
    assert_eq!(feed(1, true, "bcdef").await?.status(), 200);
    let heard = place.hear(&command).await?;
    assert_eq!((heard.text().as_str(), heard.exit_code), ("abcdef", Some(0)));
    Ok(())
}
