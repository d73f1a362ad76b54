//! Many readers, some of whom do not read.

use futures_util::future::try_join_all;
use sandbank_test_support::wait_for;
use serde_json::json;

use crate::heard::Heard;
use crate::place::{LIMIT, Place, shell};

const FLOOD_BYTES: u64 = 100_000_000;
const GROWTH_KIB: u64 = 64 << 10;
const STREAMS: usize = 1_000;
const KIB_PER_STREAM: u64 = 100;

pub(super) async fn slow_and_vanished(place: Place) -> anyhow::Result<()> {
    let script = format!(
        "until [ -e go ]; do sleep 0.01; done; head -c {FLOOD_BYTES} /dev/zero | tr '\\0' y; exit 6"
    );
    let command = place.start(shell(&script)).await?;
    let daemon = place.daemon_kib("VmRSS")?;
    let mut standing_still = Vec::new();
    for _ in 0..5 {
        standing_still.push(place.stream(&command, "").await?);
    }
    let reader = tokio::spawn(Heard::counting().all(place.stream(&command, "").await?));
    place.inside("touch go").await?;
    for _ in 0..100 {
        let mut vanishing = place.stream(&command, "").await?;
        vanishing.chunk().await?;
    }
    let heard = reader.await??;
    assert_eq!(heard.output_bytes + heard.dropped_bytes, FLOOD_BYTES);
    assert_eq!(heard.exit_code, Some(6));
    let grown = place.daemon_kib("VmHWM")?.saturating_sub(daemon);
    assert!(grown < GROWTH_KIB, "the daemon grew by {grown} KiB");
    // Who reads on after all is told what was missed, and the ending.
    for stream in standing_still {
        let late = Heard::counting().all(stream).await?;
        assert_eq!(late.output_bytes + late.dropped_bytes, FLOOD_BYTES);
        assert!(late.dropped_bytes > 0, "nobody waited for it");
        assert_eq!(late.exit_code, Some(6));
    }
    no_reader_is_left(&place).await
}

pub(super) async fn a_thousand(place: Place) -> anyhow::Result<()> {
    let script = "echo first; until [ -e go ]; do sleep 0.05; done; echo last; exit 5";
    let command = place.start(shell(script)).await?;
    let daemon = place.daemon_kib("VmRSS")?;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = place.stream(&command, "").await?;
        let first = stream.chunk().await?.unwrap_or_default();
        let text = String::from_utf8_lossy(&first).into_owned();
        assert!(text.contains("first") && text.ends_with('\n'), "{text}");
        streams.push(stream);
    }
    let grown = place.daemon_kib("VmRSS")?.saturating_sub(daemon);
    assert!(grown < KIB_PER_STREAM * STREAMS as u64, "the daemon grew by {grown} KiB");
    println!("           {} KiB of the daemon per stream", grown / STREAMS as u64);
    place.inside("touch go").await?;
    let endings = streams.into_iter().map(|stream| async {
        let text = stream.text().await?;
        let lines: Vec<_> = text.lines().filter(|line| !line.contains("heartbeat")).collect();
        let [line, ending] = lines.as_slice() else { anyhow::bail!("{text}") };
        anyhow::ensure!(line.contains("last") && ending.contains("\"exitCode\":5"), "{text}");
        Ok(())
    });
    try_join_all(endings).await?;
    no_reader_is_left(&place).await
}

async fn no_reader_is_left(place: &Place) -> anyhow::Result<()> {
    let route = format!("/v1/sandboxes/{}/stats", place.sandbox);
    wait_for("the readers to be gone", LIMIT, || async {
        let stats = place.api.call("GET", &route, None).await.unwrap_or_default();
        stats["runner"]["readersOpen"] == json!(0)
    })
    .await
}
