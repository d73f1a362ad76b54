//! Commands that do not want to end, and some that have only stopped.

use sandbank_test_support::wait_for;
use serde_json::json;

use crate::place::{LIMIT, Place, shell};

/// Ways to hide from a timeout; each keeps a `sleep 7777`.
const HIDERS: [&str; 6] = [
    "trap '' TERM; while :; do sleep 7777; done",
    "(setsid bash -c 'trap \"\" TERM HUP; sleep 7777' &); sleep 7777",
    "(setsid bash -c '(env -i setsid sleep 7777 &) &' &); trap '' TERM; sleep 7777",
    "setsid bash -c 'kill -STOP $$; sleep 7777' & sleep 7777 & kill -STOP $$; sleep 7777",
    "again() { trap '' TERM; while :; do sleep 7777; done; }; again & again & again & exec sleep 7777",
    "bash -c 'trap \"(exec setsid sleep 7777 &)\" TERM; while :; do sleep 0.05; done'",
];

pub(super) async fn timeout(place: Place) -> anyhow::Result<()> {
    let mut commands = Vec::new();
    for script in HIDERS {
        let mut body = shell(script);
        body["timeoutMs"] = json!(1_000);
        commands.push((script, place.start(body).await?));
    }
    // The positive control: what is not its own is left alone.
    let bystander = place.start(shell("sleep 6666")).await?;
    for (script, command) in commands {
        let heard = place.hear(&command).await?;
        assert_eq!(heard.ending, Some(json!({ "kind": "timed_out" })), "{script}");
        assert_eq!(heard.exit_code, Some(124), "{script}");
    }
    assert_eq!(place.processes_with("7777").await?, 0, "something hid from its timeout");
    assert_eq!(place.processes_with("6666").await?, 1);
    assert_eq!(place.status(&bystander).await?["state"], "running");
    Ok(())
}

pub(super) async fn stopped(place: Place) -> anyhow::Result<()> {
    let command = place.start(shell("echo up; kill -STOP $$; echo again; exit 17")).await?;
    let state = || async {
        let script = "grep -ls '^State:.T' /proc/[0-9]*/status | wc -l";
        place.inside(script).await.is_ok_and(|stopped| stopped == "1")
    };
    wait_for("it to stop", LIMIT, state).await?;
    let status = place.status(&command).await?;
    assert_eq!((&status["state"], &status["ending"]), (&json!("running"), &json!(null)));
    place.signal(&command, "CONT").await?;
    let heard = place.hear(&command).await?;
    assert_eq!((heard.text().as_str(), heard.exit_code), ("up\nagain\n", Some(17)));
    Ok(())
}

pub(super) async fn ignores_term(place: Place) -> anyhow::Result<()> {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let command = place.start(shell(script)).await?;
    wait_for("it to be ready", LIMIT, || async {
        place.status(&command).await.is_ok_and(|status| status["lastSeq"] == json!(1))
    })
    .await?;
    let kill = format!("{}:kill", place.route(&command));
    place.api.call("POST", &kill, None).await?;
    assert_eq!(place.status(&command).await?["state"], "running", "TERM is ignored");
    place.signal(&command, "KILL").await?;
    let heard = place.hear(&command).await?;
    let ending = heard.ending.clone().unwrap_or_default();
    assert_eq!((&ending["kind"], &ending["signal"]), (&json!("killed"), &json!(9)), "{heard:?}");
    assert!(ending["by"].as_str().is_some_and(|by| !by.is_empty()), "{ending}");
    Ok(())
}
