//! Ten thousand of them.

use futures_util::{StreamExt, TryStreamExt, stream};
use sandbank_test_support::wait_for;
use serde_json::json;

use crate::place::{LIMIT, Place};

const COMMANDS: usize = 10_000;
const ORPHANS: usize = 10_000;
const FLAT_KIB: u64 = 8 << 10;

fn code_of(number: usize) -> usize {
    number % 256
}

/// Starts them a few at a time, and returns when the sandbox says that all have ended.
async fn run_all(place: &Place, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let start = |number: usize| {
        let script = format!("exit {}", code_of(number));
        let body = json!({ "argv": ["sh", "-c", script], "commandId": format!("quick-{number}") });
        async move { place.start(body).await.map(drop) }
    };
    stream::iter(numbers.map(start)).buffer_unordered(16).try_collect::<()>().await?;
    let route = format!("/v1/sandboxes/{}/stats", place.sandbox);
    wait_for("all of them to end", LIMIT, || async {
        let stats = place.api.call("GET", &route, None).await.unwrap_or_default();
        stats["runner"]["commandsRunning"] == json!(0)
    })
    .await
}

pub(super) async fn quick_commands(place: Place) -> anyhow::Result<()> {
    run_all(&place, 0..COMMANDS).await?;
    let route = format!("/v1/sandboxes/{}/commands", place.sandbox);
    let list = place.api.call("GET", &route, None).await?;
    let list = list["commands"].as_array().cloned().unwrap_or_default();
    assert_eq!(list.len(), COMMANDS, "all of them are remembered");
    for (number, command) in list.iter().enumerate() {
        let id = command["commandId"].as_str().unwrap_or_default();
        let number = id.strip_prefix("quick-").map_or(Ok(number), str::parse)?;
        let exited = json!({ "kind": "exited", "code": code_of(number) });
        assert_eq!(command["ending"], exited, "{command}");
    }
    no_zombies(&place).await?;
    // As many are remembered as ever will be: further ones take no more memory.
    let full = place.sandbox_kib("memoryBytes").await?;
    run_all(&place, COMMANDS..COMMANDS + COMMANDS / 10).await?;
    let grown = place.sandbox_kib("memoryBytes").await?.saturating_sub(full);
    println!("           the sandbox has {full} KiB after {COMMANDS} commands");
    assert!(grown < FLAT_KIB, "the sandbox grew by {grown} KiB");
    no_zombies(&place).await
}

pub(super) async fn orphans(place: Place) -> anyhow::Result<()> {
    let before = place.sandbox_kib("memoryBytes").await?;
    let script = format!("for ((i = 0; i < {ORPHANS}; i++)); do ( : & ); done; exit 7");
    let heard = place.script(&script).await?;
    assert_eq!(heard.exit_code, Some(7), "{heard:?}");
    no_zombies(&place).await?;
    let grown = place.sandbox_kib("memoryBytes").await?.saturating_sub(before);
    assert!(grown < FLAT_KIB, "the sandbox grew by {grown} KiB");
    Ok(())
}

async fn no_zombies(place: &Place) -> anyhow::Result<()> {
    wait_for("every dead process to be reaped", LIMIT, || async {
        place.zombies().await.is_ok_and(|left| left == 0)
    })
    .await
}
