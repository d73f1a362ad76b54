//! Output that comes faster than it is read: the runner keeps 4 MiB of it, and says how much it does not.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::{Value, json};

use crate::tools::{ON, Tools};

const LIMIT: Duration = Duration::from_secs(20);
/// Each has two characters and three bytes.
const LINES: u64 = 5_000_000;
const BEGUN: &str = "begun\n";
const ENDED: &str = "ended\n";

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The last record, or all of the answer. The daemon of the test reads nothing while the command prints:
/// it has one thread, and that waits at the pipes.
async fn flooded(stream: &str) -> Value {
    let tools = Tools::with("enabled = true", &[ON]).await;
    let place = tempfile::tempdir().unwrap();
    let [begun, go, printed] = ["begun", "go", "printed"].map(|name| place.path().join(name));
    pipe(&go);
    pipe(&printed);
    let command = format!(
        "echo begun; touch {}; cat {}; yes ü | head -n {LINES}; : > {}; echo ended",
        begun.display(),
        go.display(),
        printed.display()
    );
    let call = tools.post(&format!("bash{stream}"), &json!({ "command": command }));
    let answer = tokio::spawn(async move { call.send().await.unwrap().text().await.unwrap() });
    wait_for("the command to run", LIMIT, || async { begun.exists() }).await.unwrap();
    std::fs::write(&go, "").unwrap();
    std::fs::read(&printed).unwrap();
    let answer = answer.await.unwrap();
    serde_json::from_str(answer.lines().last().unwrap()).unwrap()
}

/// What is missing is counted in bytes, so that it is more than there are characters.
fn is_counted_in_bytes(shown: &str, missing: u64) {
    let told = shown.chars().count() as u64 + missing;
    let others = (BEGUN.len() + ENDED.len()) as u64;
    assert!(told > LINES * 2 + others, "{told} of {LINES} lines: nothing was lost");
    assert!(told <= LINES * 3 + others, "{told} of {LINES} lines");
    assert!(!shown.contains('\u{fffd}'), "a character was cut");
}

#[tokio::test]
async fn a_stream_goes_on_behind_what_is_lost_and_counts_it() {
    let last = flooded("?stream=ndjson").await;
    let output = &last["output"];
    assert_eq!((&last["type"], &output["exitCode"]), (&json!("done"), &json!(0)));
    let shown = output["stdout"].as_str().unwrap();
    assert!(shown.ends_with(ENDED), "{}", &shown[shown.len() - 20..]);
    is_counted_in_bytes(shown, output["stdoutTruncatedChars"].as_u64().unwrap());
}

#[tokio::test]
async fn an_answer_has_what_came_before_what_is_lost_and_counts_it() {
    let output = flooded("").await;
    assert_eq!(output["exitCode"], 0);
    let text = output["stdout"].as_str().unwrap();
    let (shown, notice) = text.split_once("\n\n[stdout truncated: ").unwrap();
    assert!(shown.starts_with(BEGUN));
    let missing = notice.strip_suffix(" characters removed]").unwrap();
    // White space at the end is not counted: one line feed.
    is_counted_in_bytes(shown, missing.parse::<u64>().unwrap() + 1);
}
