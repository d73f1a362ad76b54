//! What a command leaves behind, and streams it lets go of.

use std::time::Duration;

use sandbank_test_support::wait_for;
use serde_json::json;

use crate::heard::Heard;
use crate::place::{LIMIT, Place, shell};

pub(super) async fn closed_streams(place: Place) -> anyhow::Result<()> {
    let at_once = place.script("exec <&- >&- 2>&-; exit 5").await?;
    assert_eq!((at_once.exit_code, at_once.output_bytes), (Some(5), 0));
    let later = "echo before; exec <&- >&- 2>&-; sleep 0.3; echo unheard > after; exit 6";
    let heard = place.script(later).await?;
    assert_eq!((heard.text().as_str(), heard.exit_code), ("before\n", Some(6)));
    assert_eq!(place.inside("cat after").await?, "unheard", "it was not ended early");
    let one = place.script("exec >&-; echo still >&2; sleep 0.1; echo here >&2; exit 7").await?;
    assert_eq!((one.errors().as_str(), one.exit_code), ("still\nhere\n", Some(7)));
    Ok(())
}

pub(super) async fn holds_stdout(place: Place) -> anyhow::Result<()> {
    let script = "(until [ -e go ]; do sleep 0.01; done; echo late; echo late >&2; touch gone) & \
                  echo first; exit 4";
    let command = place.start(shell(script)).await?;
    let heard = place.hear(&command).await?;
    assert_eq!((heard.text().as_str(), heard.exit_code), ("first\n", Some(4)));
    place.inside("touch go; until [ -e gone ]; do sleep 0.01; done").await?;
    wait_for("what came late to be counted", LIMIT, || async {
        let Ok(status) = place.status(&command).await else { return false };
        (&status["stdoutBytes"], &status["stderrBytes"], &status["droppedBytes"])
            == (&json!(11), &json!(5), &json!(10))
    })
    .await?;
    let again = place.hear(&command).await?;
    assert_eq!((again.text().as_str(), again.exit_code), ("first\n", Some(4)));
    Ok(())
}

pub(super) async fn outlives(place: Place) -> anyhow::Result<()> {
    let ways = [
        ("sleep 7001 & exit 11", "7001", 11),
        ("nohup sleep 7002 & exit 12", "7002", 12),
        ("setsid sleep 7003 & exit 13", "7003", 13),
        ("(setsid bash -c '(sleep 7004 &)' &); exit 14", "7004", 14),
        ("(trap '' HUP; sleep 7005 & disown); exit 15", "7005", 15),
        ("coproc sleep 7006; exit 16", "7006", 16),
    ];
    for (script, argument, code) in ways {
        let command = place.start(shell(script)).await?;
        let heard = place.hear(&command).await?;
        assert_eq!(heard.exit_code, Some(code), "{script}");
        wait_for("the child to be there", LIMIT, || async {
            place.processes_with(argument).await.is_ok_and(|alive| alive == 1)
        })
        .await?;
        // It is still the command's: whoever wants it gone can say so.
        place.signal(&command, "KILL").await?;
        wait_for("the child to be gone", LIMIT, || async {
            place.processes_with(argument).await.is_ok_and(|alive| alive == 0)
        })
        .await?;
        assert_eq!(place.wait(&command).await?["exitCode"], json!(code), "{script}");
    }
    Ok(())
}

pub(super) async fn chatters(place: Place) -> anyhow::Result<()> {
    let command = place.start(shell("yes & exit 3")).await?;
    let slow = place.stream(&command, "").await?;
    let slow = tokio::spawn(Heard::counting().paced(slow, Duration::from_millis(20)));
    let waited = tokio::time::timeout(LIMIT, place.wait(&command)).await;
    place.signal(&command, "KILL").await?;
    let waited = waited.map_err(|_| anyhow::anyhow!("the ending is held back"))??;
    assert_eq!(waited["exitCode"], json!(3));
    let heard = slow.await??;
    assert_eq!(heard.exit_code, Some(3), "the slow reader hears it, too");
    let status = place.status(&command).await?;
    let told = heard.output_bytes + heard.dropped_bytes;
    assert!(status["stdoutBytes"].as_u64() >= Some(told), "{status}: {told}");
    Ok(())
}
