//! More output than anybody keeps.

use serde_json::json;

use crate::heard::Heard;
use crate::place::{Place, shell};

const GROWTH_KIB: u64 = 64 << 10;
const LINE_BYTES: u64 = 200_000_000;

pub(super) async fn huge_output(place: Place) -> anyhow::Result<()> {
    let total: u64 = if crate::torture() { 20 << 30 } else { 5 << 30 };
    let daemon = place.daemon_kib("VmRSS")?;
    let sandbox = place.sandbox_kib("memoryBytes").await?;
    let command = place.start(shell(&format!("head -c {total} /dev/zero; exit 3"))).await?;
    let waited = place.wait(&command).await?;
    assert_eq!(waited["ending"], json!({ "kind": "exited", "code": 3 }));
    let status = place.status(&command).await?;
    assert_eq!(status["stdoutBytes"], json!(total));
    let heard = Heard::counting().all(place.stream(&command, "").await?).await?;
    assert_eq!(heard.dropped_bytes + heard.output_bytes, total, "kept or counted");
    assert!(heard.dropped_bytes > 0 && heard.output_bytes > 0, "{heard:?}");
    assert_eq!(status["droppedBytes"], json!(heard.dropped_bytes));
    assert_eq!(heard.exit_code, Some(3));
    let grown = place.daemon_kib("VmHWM")?.saturating_sub(daemon);
    assert!(grown < GROWTH_KIB, "the daemon grew by {grown} KiB");
    let grown = place.sandbox_kib("memoryPeakBytes").await?.saturating_sub(sandbox);
    assert!(grown < GROWTH_KIB, "the sandbox grew by {grown} KiB");
    Ok(())
}

pub(super) async fn endless_line(place: Place) -> anyhow::Result<()> {
    let daemon = place.daemon_kib("VmRSS")?;
    let script = format!("head -c {LINE_BYTES} /dev/zero | tr '\\0' x; exit 4");
    let command = place.start(shell(&script)).await?;
    let heard = Heard::counting().all(place.stream(&command, "").await?).await?;
    assert_eq!(heard.dropped_bytes + heard.output_bytes, LINE_BYTES);
    assert_eq!(heard.exit_code, Some(4));
    let grown = place.daemon_kib("VmHWM")?.saturating_sub(daemon);
    assert!(grown < GROWTH_KIB, "the daemon grew by {grown} KiB");
    Ok(())
}
