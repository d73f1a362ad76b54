//! Operations that meet: each caller gets an answer that is in the documentation, and nobody hangs.

use anyhow::Context;
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};

use crate::heard::Heard;
use crate::place::{LIMIT, Place, shell};

const ROUNDS: usize = 5;

async fn sandbox(place: &Place, name: &str) -> anyhow::Result<Place> {
    let body = json!({ "sessionKey": name, "network": { "mode": "none" } });
    place.another(body).await
}

fn is_gone((status, answer): &(u16, Value)) -> bool {
    [404, 409, 410].contains(status) && answer["error"].is_string() || *status == 503
}

pub(super) async fn delete_and_exec(place: Place) -> anyhow::Result<()> {
    for round in 0..ROUNDS {
        let victim = sandbox(&place, &format!("delete x exec {round}")).await?;
        let route = format!("/v1/sandboxes/{}", victim.sandbox);
        let delete = async {
            tokio::task::yield_now().await;
            victim.api.try_call("DELETE", &route, None).await
        };
        let execs = join_all((0..20).map(|_| async {
            let commands = format!("{route}/commands");
            let answer = victim.api.try_call("POST", &commands, Some(shell("echo hi"))).await?;
            let Some(command) = answer.1["commandId"].as_str() else { return Ok((answer, None)) };
            let waited = format!("{commands}/{command}/wait");
            let waited = victim.api.try_call("GET", &waited, None).await?;
            anyhow::Ok((answer, Some(waited)))
        }));
        let both = async { tokio::join!(delete, execs) };
        let (deleted, execs) = tokio::time::timeout(LIMIT, both).await?;
        assert_eq!(deleted?.0, 200);
        for exec in execs {
            let (started, waited) = exec?;
            assert!(started.0 == 200 || is_gone(&started), "{started:?}");
            let Some(waited) = waited else { continue };
            let kind = waited.1["ending"]["kind"].as_str().unwrap_or_default();
            let told = waited.0 == 200 && ["exited", "lost"].contains(&kind);
            assert!(told || is_gone(&waited), "{waited:?}");
            assert!(kind != "exited" || waited.1["exitCode"] == json!(0), "{waited:?}");
        }
        let after =
            victim.api.try_call("POST", &format!("{route}/commands"), Some(shell(""))).await?;
        assert!(is_gone(&after), "{after:?}");
    }
    Ok(())
}

pub(super) async fn delete_and_delete(place: Place) -> anyhow::Result<()> {
    for round in 0..ROUNDS {
        let victim = sandbox(&place, &format!("double delete {round}")).await?;
        let route = format!("/v1/sandboxes/{}", victim.sandbox);
        let deletes = (0..8).map(|_| victim.api.try_call("DELETE", &route, None));
        let answers = tokio::time::timeout(LIMIT, try_join_all(deletes)).await??;
        assert!(answers.iter().any(|(status, _)| *status == 200), "{answers:?}");
        assert!(answers.iter().all(|answer| answer.0 == 200 || answer.0 == 404), "{answers:?}");
        assert_eq!(victim.api.try_call("DELETE", &route, None).await?.0, 404);
        victim.api.stop(&victim.sandbox).await?;
    }
    Ok(())
}

pub(super) async fn stop_and_stream(place: Place) -> anyhow::Result<()> {
    let victim = sandbox(&place, "stop x stream").await?;
    let command = victim.start(shell("while :; do echo tick; sleep 0.01; done")).await?;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let stream = victim.stream(&command, "").await?;
        readers.push(tokio::spawn(Heard::default().all(stream)));
    }
    let waiting = {
        let (victim, command) = (victim.clone(), command.clone());
        tokio::spawn(async move { victim.wait(&command).await })
    };
    wait_until_waiting(&victim, &command).await?;
    victim.api.stop(&victim.sandbox).await?;
    for reader in readers {
        let heard = tokio::time::timeout(LIMIT, reader).await???;
        assert_eq!((heard.kind(), heard.exit_code), ("lost", None), "{:?}", heard.ending);
        assert!(heard.text().starts_with("tick\n"), "what was said is kept");
    }
    let waited = tokio::time::timeout(LIMIT, waiting).await???;
    assert_eq!(waited["ending"]["kind"], "lost");
    Ok(())
}

/// Until the daemon has asked the runner about the command and it has said something.
async fn wait_until_waiting(place: &Place, command: &str) -> anyhow::Result<()> {
    sandbank_test_support::wait_for("some ticks", LIMIT, || async {
        let status = place.status(command).await.unwrap_or_default();
        status["lastSeq"].as_u64() > Some(20)
    })
    .await
}

pub(super) async fn delete_and_create(place: Place) -> anyhow::Result<()> {
    let body = json!({ "sessionKey": "delete x create", "network": { "mode": "none" } });
    let mut current = place.another(body.clone()).await?;
    for _ in 0..ROUNDS {
        let route = format!("/v1/sandboxes/{}", current.sandbox);
        let delete = current.api.try_call("DELETE", &route, None);
        let creates = (0..8).map(|_| place.another(body.clone()));
        let both = async { tokio::join!(delete, join_all(creates)) };
        let (deleted, created) = tokio::time::timeout(LIMIT, both).await?;
        assert_eq!(deleted?.0, 200);
        for place in created {
            place?;
        }
        current = place.another(body.clone()).await?;
        assert_eq!(current.inside("echo alive").await?, "alive");
        let all = place.api.sandboxes().await?;
        let named = all.iter().filter(|one| one["key"] == json!("delete x create"));
        let live = named.filter(|one| one["state"] == json!("running")).count();
        assert_eq!(live, 1, "{all:?}");
    }
    place.api.stop(&current.sandbox).await
}

pub(super) async fn stop_and_everything(place: Place) -> anyhow::Result<()> {
    const KEY: &str = "stop x everything";
    for round in 0..ROUNDS {
        let victim = sandbox(&place, KEY).await?;
        let endless = victim.start(shell("while :; do echo tick; sleep 0.01; done")).await?;
        let stream = victim.stream(&endless, "").await?;
        let commands = format!("/v1/sandboxes/{}/commands", victim.sandbox);
        let crossing = async {
            tokio::join!(
                victim.api.stop(&victim.sandbox),
                victim.api.stop(&victim.sandbox),
                sandbox(&place, KEY),
                victim.api.try_call("POST", &commands, Some(shell("true"))),
                Heard::default().all(stream),
            )
        };
        let answers = tokio::time::timeout(LIMIT, crossing).await;
        let (first, second, created, started, heard) =
            answers.with_context(|| format!("round {round}"))?;
        first?;
        second?;
        created?;
        let started = started?;
        assert!(started.0 == 200 || is_gone(&started), "{started:?}");
        assert_eq!(heard?.kind(), "lost");
        let all = place.api.sandboxes().await?;
        let named: Vec<_> = all.iter().filter(|one| one["key"] == json!(KEY)).collect();
        let back = named.iter().any(|one| one["id"] == json!(victim.sandbox));
        assert!(!back && named.len() <= 1, "{named:?} after {} was stopped", victim.sandbox);
    }
    let last = sandbox(&place, KEY).await?;
    place.api.stop(&last.sandbox).await
}
