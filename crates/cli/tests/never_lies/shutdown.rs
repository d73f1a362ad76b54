//! SIGTERM while everything is going on.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{Api, TestDaemon, skip_unless_root, wait_for};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::SANDBANK;
use crate::heard::Heard;
use crate::host::place;
use crate::place::{LIMIT, shell};

const LINES: u32 = 400;

fn talk() -> Value {
    shell(&format!("for i in $(seq {LINES}); do echo line $i; sleep 0.01; done; exit 29"))
}

fn said() -> String {
    (1..=LINES).map(|i| format!("line {i}\n")).collect()
}

/// Creates that a signal will cross.
struct Late(Vec<JoinHandle<anyhow::Result<(u16, Value)>>>);

impl Late {
    fn creates(api: &Api, count: usize) -> Self {
        let create = |number| {
            let api = api.clone();
            let body =
                json!({ "sessionKey": format!("late-{number}"), "network": { "mode": "none" } });
            tokio::spawn(async move { api.try_call("POST", "/v1/sandboxes", Some(body)).await })
        };
        Self((0..count).map(create).collect())
    }

    /// Each has an answer, a refusal, or a connection that was cut or never accepted; no hang.
    async fn promised(self) -> anyhow::Result<Vec<Value>> {
        let mut made = Vec::new();
        for create in self.0 {
            match tokio::time::timeout(LIMIT, create).await?? {
                Ok((200, answer)) => made.push(answer["sandboxId"].clone()),
                Ok((status, answer)) => assert_eq!(status, 503, "{answer}"),
                Err(_) => {}
            }
        }
        Ok(made)
    }
}

async fn assert_running(api: &Api, promised: &[Value]) -> anyhow::Result<()> {
    let known = api.sandboxes().await?;
    for id in promised {
        let found = known.iter().any(|one| one["id"] == *id && one["state"] == "running");
        assert!(found, "{id} was promised and is not there: {known:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_cuts_streams_without_an_ending_and_they_resume_without_a_gap() -> anyhow::Result<()>
{
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let place = place(&daemon, "talker").await?;
    let command = place.start(talk()).await?;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let stream = place.stream(&command, "").await?;
        readers.push(tokio::spawn(async move {
            let mut heard = Heard::default();
            let clean = heard.listen(stream, Duration::ZERO).await.is_ok();
            (heard, clean)
        }));
    }
    wait_for("some lines", LIMIT, || async {
        place.status(&command).await.is_ok_and(|status| status["lastSeq"].as_u64() > Some(20))
    })
    .await?;
    let late = Late::creates(&place.api, 20);
    assert_eq!(daemon.terminate().await?, Some(0), "an ordinary stop");
    let promised = late.promised().await?;
    daemon.launch().await?;
    assert_running(&place.api, &promised).await?;
    for reader in readers {
        let (mut heard, clean) = tokio::time::timeout(LIMIT, reader).await??;
        assert!(!clean && heard.ending.is_none(), "a cut stream must not look complete: {heard:?}");
        let after = format!("after={}", heard.last_seq);
        heard.listen(place.stream(&command, &after).await?, Duration::ZERO).await?;
        assert_eq!((heard.text(), heard.exit_code), (said(), Some(29)));
    }
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_does_not_wait_for_anybody_and_loses_nothing() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let patient = [("SANDBANK_SHUTDOWN_GRACE_MS", "600000")];
    let mut daemon = TestDaemon::start_with(SANDBANK, &patient).await?;
    let place = place(&daemon, "slow upload").await?;
    let command = place.start(json!({ "argv": ["cat"], "stdin": "open" })).await?;
    let route = format!("{}/stdin?offset=0", place.route(&command));
    let endless = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let upload = place.api.request("POST", &route).body(reqwest::Body::wrap_stream(endless));
    let upload = tokio::spawn(upload.send());
    wait_for("the upload to be under way", LIMIT, || async {
        let route = format!("/v1/sandboxes/{}", place.sandbox);
        place.api.call("GET", &route, None).await.is_ok_and(|one| one["busy"] != json!(false))
    })
    .await?;
    let talker = place.start(talk()).await?;
    let late = Late::creates(&place.api, 6);
    let pid = Pid::from_raw(i32::try_from(daemon.pid().unwrap())?).unwrap();
    kill_process(pid, Signal::TERM)?;
    let url = format!("{}/v1/health", daemon.url());
    wait_for("the first SIGTERM to close the door", LIMIT, || async {
        reqwest::get(&url).await.is_err()
    })
    .await?;
    assert!(!upload.is_finished(), "a running request may finish");
    assert_eq!(daemon.terminate().await?, Some(0));
    assert!(tokio::time::timeout(LIMIT, upload).await??.is_err(), "it was cut");
    let promised = late.promised().await?;
    daemon.launch().await?;
    assert_running(&place.api, &promised).await?;
    assert_eq!(place.status(&command).await?["state"], "running", "the command goes on");
    let heard = place.hear(&talker).await?;
    assert_eq!((heard.text(), heard.exit_code), (said(), Some(29)));
    daemon.finish().await
}
