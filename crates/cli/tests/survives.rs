//! The daemon may be killed at any moment without losing a sandbox, a command, or a byte.

use std::time::Duration;

use sandbank_test_support::{
    Api, LogRecord, TestDaemon, skip_over_docker, skip_unless_root, wait_for,
};
use serde_json::json;

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");
const LINES: u64 = 600;

#[tokio::test(flavor = "multi_thread")]
async fn three_kill_9_lose_no_line_no_id_no_port_and_no_exit_code() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({
        "sessionKey": "survivor", "idleTtlMs": 60_000, "network": { "mode": "none" }, "ports": [4000]
    });
    let id = api.create_with(body.clone()).await?;
    let port = api.call("GET", &format!("/v1/sandboxes/{id}/ports/4000"), None).await?;
    let before = api.call("GET", &format!("/v1/sandboxes/{id}"), None).await?;
    let script = format!("for i in $(seq {LINES}); do echo line $i; sleep 0.01; done; exit 42");
    let command = api.bash(&id, &script).await?;

    let mut reader =
        Reader { api: api.clone(), id: id.clone(), command, after: 0, text: String::new() };
    for lines in [50, 200, 350] {
        reader.read_until(lines).await?;
        daemon.kill_9()?;
        daemon.launch().await?;
    }
    reader.read_until(LINES).await?;

    let expected: String = (1..=LINES).map(|i| format!("line {i}\n")).collect();
    assert_eq!(reader.text, expected, "every line exactly once");
    assert_eq!(api.wait(&id, &reader.command).await?, 42);
    assert_eq!(api.create_with(body).await?, id, "the key still names the sandbox");
    let again = api.call("GET", &format!("/v1/sandboxes/{id}/ports/4000"), None).await?;
    assert_eq!(again["hostPort"], port["hostPort"]);
    let after = api.call("GET", &format!("/v1/sandboxes/{id}"), None).await?;
    for field in ["key", "createdAtMs", "idleTtlMs", "endsAtMs", "image", "limits", "ports"] {
        assert_eq!(after[field], before[field], "{field} changed");
    }
    daemon.finish().await
}

/// A client that resumes with `after` whenever its stream breaks.
struct Reader {
    api: Api,
    id: String,
    command: String,
    after: u64,
    text: String,
}

impl Reader {
    async fn read_until(&mut self, lines: u64) -> anyhow::Result<()> {
        let path = format!(
            "/v1/sandboxes/{}/commands/{}/logs?after={}",
            self.id, self.command, self.after
        );
        let mut stream = self.api.request("GET", &path).send().await?.error_for_status()?;
        let mut partial = Vec::new();
        while (self.text.lines().count() as u64) < lines {
            let Some(chunk) = stream.chunk().await? else { break };
            partial.extend_from_slice(&chunk);
            while let Some(end) = partial.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = partial.drain(..=end).collect();
                self.take(serde_json::from_slice(&line)?);
            }
        }
        Ok(())
    }

    fn take(&mut self, record: LogRecord) {
        if record.stream == "stdout" {
            self.after = record.seq;
            self.text.push_str(&record.data);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_was_away_past_the_ttl_does_not_reap_a_busy_sandbox() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({ "sessionKey": "busy", "idleTtlMs": 10_000, "network": { "mode": "none" } });
    let id = api.create_with(body).await?;
    let busy = api.bash(&id, "echo up; sleep 25; echo done").await?;
    daemon.kill_9()?;
    tokio::time::sleep(Duration::from_secs(12)).await; // The time away is what is tested.
    daemon.launch().await?;
    assert_eq!(api.wait(&id, &busy).await?, 0);
    wait_for("the sandbox to expire once idle", Duration::from_secs(30), || async {
        api.sandboxes().await.is_ok_and(|all| all.is_empty())
    })
    .await?;
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_runner_is_killed_fails_with_a_reason() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("victim").await?;
    daemon.signal_runner(&id, rustix::process::Signal::KILL)?;
    wait_for("the death to be noticed", Duration::from_secs(5), || async {
        let route = format!("/v1/sandboxes/{id}/post-mortem");
        let answer = api.try_call("GET", &route, None).await;
        answer.is_ok_and(|(status, body)| status == 200 && body["cause"]["kind"] == "runner_died")
    })
    .await?;
    let fresh = api.create("victim").await?;
    assert_ne!(fresh, id, "the key gets a new sandbox");
    daemon.finish().await
}

/// A program that is typed into while the daemon is killed again and again: nothing it wrote is
/// missed or seen twice, and nothing that was typed and answered is lost or typed twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_left_and_come_back_to_across_kill_9() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create_with(json!({"sessionKey": "t", "network": {"mode": "none"}})).await?;
    let script = "stty -echo; printf '\\033[?1049h'; echo ready; n=0; \
                  while read -r line; do n=$((n+1)); echo \"$n:$line.\"; [ \"$line\" = end ] && exit 9; done";
    let body = json!({
        "argv": ["bash", "-c", script], "pty": {"rows": 24, "cols": 80}, "screen": true,
        "commandId": "term",
    });
    api.call("POST", &format!("/v1/sandboxes/{id}/commands"), Some(body)).await?;
    let command = format!("/v1/sandboxes/{id}/commands/term");
    let mut viewer = api.attach(&command, "").await?;
    viewer.read_until("ready").await?;
    let (mut seen, mut typed) = (Vec::new(), 0);
    for _ in 0..3 {
        for _ in 0..20 {
            typed += 1;
            viewer.write(format!("line{typed}\n")).await?;
        }
        viewer.read_until(&format!("{typed}:line{typed}.")).await?;
        let after = viewer.seq;
        seen.append(&mut viewer.output);
        daemon.kill_9()?;
        drop(viewer);
        daemon.launch().await?;
        viewer = api.attach(&command, &format!("?after={after}")).await?;
    }
    let screen = api.call("GET", &format!("{command}/screen"), None).await?;
    assert_eq!((&screen["alternate"], &screen["seq"]), (&json!(true), &json!(viewer.seq)));
    viewer.write("end\n").await?;
    let ended = viewer.said("ended").await?;
    assert_eq!(ended["exitCode"], 9);
    seen.append(&mut viewer.output);
    let mut expected = "\u{1b}[?1049hready\r\n".to_owned();
    (1..=typed).for_each(|n| expected.push_str(&format!("{n}:line{n}.\r\n")));
    expected.push_str(&format!("{}:end.\r\n", typed + 1));
    assert_eq!(String::from_utf8(seen)?, expected);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runners_log_has_the_requests_ids_and_is_bounded_out_of_reach_and_gone_with_its_sandbox()
-> anyhow::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(30);
    const MAX_LOG_BYTES: u64 = 256 << 10;
    if skip_unless_root() || skip_over_docker("Docker has a container's log") {
        return Ok(());
    }
    let mut daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("logged").await?;
    let directory = daemon.data_dir().join("machines").join(&id);
    let log = directory.join("runner.log");
    let ask = |request: String, script: &str| {
        let path = format!("/v1/sandboxes/{id}/commands?wait=true");
        let body = json!({ "argv": ["bash", "-c", script] });
        let sent = api.request("POST", &path).header("x-request-id", request).json(&body).send();
        async { anyhow::Ok(sent.await?.error_for_status()?.json::<serde_json::Value>().await?) }
    };
    let is_there = |word: &'static str| {
        let log = log.clone();
        let looked = move || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            async move { text.contains(word) }
        };
        wait_for("the request's id stands in the log", PATIENCE, looked)
    };
    ask("before-1".to_owned(), "true").await?;
    is_there("\"request_id\":\"before-1\"").await?;
    // The runner goes on, and the next daemon writes down what it says.
    let script = "echo up; sleep 1; exit 3";
    let running = api.bash(&id, script).await?;
    daemon.kill_9()?;
    daemon.launch().await?;
    assert_eq!(api.wait(&id, &running).await?, 3);
    is_there("\"code\":3").await?;
    ask("after-1".to_owned(), "true").await?;
    is_there("\"request_id\":\"after-1\"").await?;

    let reach = format!(
        "ls {}; ls -l /proc/1/fd; cat /proc/1/fd/2; : > /proc/1/fd/2; echo forged > /proc/1/fd/2",
        directory.display()
    );
    let reached = ask("inside-1".to_owned(), &reach).await?;
    assert_eq!((&reached["exitCode"], &reached["stdout"]), (&json!(1), &json!("")), "{reached}");
    for n in 0..40 {
        let missing = format!("/v1/sandboxes/{id}/files?path=no-{n}");
        let flood = (0..50).map(|_| api.request("GET", &missing).send());
        for answer in futures_util::future::join_all(flood).await {
            assert_eq!(answer?.status(), 404);
        }
        assert!(std::fs::metadata(&log)?.len() <= MAX_LOG_BYTES);
    }
    // A runner that finds its pipe full goes on without the line.
    let is_heard_again = || async {
        let asked = ask("last-1".to_owned(), "true").await;
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        asked.is_ok() && text.contains("\"request_id\":\"last-1\"")
    };
    wait_for("what is said after a flood stands in the log", PATIENCE, is_heard_again).await?;
    let text = std::fs::read_to_string(&log)?;
    assert!(
        !text.contains("forged") && !text.contains("no-1") && !text.contains("sleep"),
        "{text}"
    );
    api.stop(&id).await?;
    wait_for("it goes with its sandbox", PATIENCE, || async { !directory.exists() }).await?;
    daemon.finish().await
}
