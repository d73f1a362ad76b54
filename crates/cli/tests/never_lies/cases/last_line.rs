//! The race between the last bytes and the death of who wrote them.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::place::Place;

const ROUNDS: usize = 80;

/// (script, exit code): all write `out` and `err` and are gone at once.
const ENDS: [(&str, i64); 4] = [
    ("printf out; printf err >&2", 0),
    ("printf err >&2; printf out; kill -9 $$", 137),
    ("sleep 100 & printf out; printf err >&2; exit 7", 7),
    ("(printf err >&2; printf out; exec true) | cat; exit 8", 8),
];

pub(super) async fn race(place: Place) -> anyhow::Result<()> {
    let round = |number: usize| {
        let place = place.clone();
        async move {
            let (script, code) = ENDS[number % ENDS.len()];
            let command = place.start(json!({ "argv": ["sh", "-c", script] })).await?;
            let live = place.hear(&command).await?;
            let later = place.hear(&command).await?;
            for heard in [live, later] {
                let said = (heard.text(), heard.errors(), heard.exit_code);
                let expected = ("out".to_owned(), "err".to_owned(), Some(code));
                anyhow::ensure!(said == expected, "round {number}, {script}: {heard:?}");
            }
            if script.contains('&') && code == 7 {
                place.signal(&command, "KILL").await?;
            }
            Ok(())
        }
    };
    stream::iter((0..ROUNDS * ENDS.len()).map(round)).buffer_unordered(12).try_collect().await
}
