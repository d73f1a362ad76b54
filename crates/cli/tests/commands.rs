//! Commands that cannot lie: endings, output, input and timeouts, through HTTP.

use std::time::Duration;

use sandbank_test_support::{Api, TestDaemon, skip_unless_root};
use serde_json::{Value, json};

const SANDBANK: &str = env!("CARGO_BIN_EXE_sandbank");

async fn ending(api: &Api, id: &str, body: Value) -> anyhow::Result<Value> {
    let command = api.start(id, body).await?;
    api.wait(id, &command).await?;
    Ok(api.status(id, &command).await?["ending"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ending_is_typed_and_true() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("endings").await?;
    let argv = |words: &[&str]| json!({ "argv": words });
    let exited = |code: i32| json!({ "kind": "exited", "code": code });
    assert_eq!(ending(&api, &id, argv(&["true"])).await?, exited(0));
    assert_eq!(ending(&api, &id, argv(&["sh", "-c", "exit 7"])).await?, exited(7));
    assert_eq!(ending(&api, &id, argv(&["no-such-program"])).await?, exited(127));
    assert_eq!(ending(&api, &id, argv(&["/etc/passwd"])).await?, exited(126));
    let killed = ending(&api, &id, argv(&["sh", "-c", "kill -SEGV $$"])).await?;
    assert_eq!(killed, json!({ "kind": "signaled", "signal": 11 }));
    assert_eq!(api.run(&id, "kill -9 $$").await?.0, 137);
    assert_eq!(
        api.run(&id, "set -e; false; echo not reached").await?,
        (1, String::new(), String::new())
    );
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_kills_the_whole_tree() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("timeout").await?;
    let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 7777' &) ; \
                  (sleep 7777 & disown); while :; do sleep 7777; done";
    let command = api.bash_within(&id, script, Duration::from_secs(1)).await?;
    assert_eq!(api.wait(&id, &command).await?, 124);
    let ending = &api.status(&id, &command).await?["ending"];
    assert_eq!(*ending, json!({ "kind": "timed_out" }));
    let (_, left, _) = api.run(&id, "ps -e -o args | grep -c '[s]leep 7777'; true").await?;
    assert_eq!(left, "0\n", "nothing of the command is left");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_that_holds_stdout_delays_nothing_and_lives_on() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("background").await?;
    let run = api.run(&id, "sleep 8888 & echo started");
    let (code, out, _) = tokio::time::timeout(Duration::from_secs(10), run).await??;
    assert_eq!((code, out.as_str()), (0, "started\n"));
    let (_, alive, _) = api.run(&id, "ps -e -o args | grep -c '[s]leep 8888'").await?;
    assert_eq!(alive, "1\n");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_are_never_cut_and_streams_stay_apart() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("characters").await?;
    // The euro sign is written a byte at a time, so that every border is crossed.
    let script = r"for b in '\342' '\202' '\254'; do printf $b; sleep 0.05; done; printf 'ß\n' >&2;
        yes 'añ€😀' | head -c 300001; printf '\377'";
    let command = api.bash(&id, script).await?;
    let records = api.logs(&id, &command).await?;
    let out: String =
        records.iter().filter(|r| r.stream == "stdout").map(|r| r.data.as_str()).collect();
    assert!(out.starts_with('€'), "{:?}", &out.chars().take(5).collect::<String>());
    let replaced = out.matches('\u{fffd}').count();
    assert!((1..=2).contains(&replaced), "only the invalid tail may be replaced, got {replaced}");
    let err: String =
        records.iter().filter(|r| r.stream == "stderr").map(|r| r.data.as_str()).collect();
    assert_eq!(err, "ß\n");
    let ending = records.last().unwrap();
    assert_eq!((ending.stream.as_str(), &ending.rest["type"]), ("control", &json!("ending")));
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gibibyte_of_output_has_exact_counts_and_flat_memory() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    const TOTAL: u64 = 1 << 30;
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("flood").await?;
    let before = memory_kib(daemon.pid().unwrap());
    let command = api.bash(&id, &format!("head -c {TOTAL} /dev/zero; exit 3")).await?;
    assert_eq!(api.wait(&id, &command).await?, 3);
    let status = api.status(&id, &command).await?;
    assert_eq!(status["stdoutBytes"], json!(TOTAL));
    let records = api.logs(&id, &command).await?;
    let dropped: u64 = records
        .iter()
        .filter(|r| r.rest.get("type") == Some(&json!("dropped")))
        .map(|r| r.rest["bytes"].as_u64().unwrap())
        .sum();
    let kept: u64 =
        records.iter().filter(|r| r.stream == "stdout").map(|r| r.data.len() as u64).sum();
    assert_eq!(dropped + kept, TOTAL, "every byte is kept or counted");
    let grown = memory_kib(daemon.pid().unwrap()).saturating_sub(before);
    assert!(grown < 64 * 1024, "the daemon grew by {grown} KiB");
    daemon.finish().await
}

fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line =
        status.lines().find(|line| line.starts_with("VmRSS:")).expect("every process has it");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number of KiB")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_of_stdin_arrive_once_across_a_repeat() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    const SIZE: usize = 100_000_000;
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("stdin").await?;
    let input: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
    let body = json!({ "argv": ["sha256sum"], "stdin": "open", "commandId": "sum-1" });
    let command = api.start(&id, body.clone()).await?;
    assert_eq!(api.start(&id, body).await?, command, "the same key attaches");
    let route = format!("/v1/sandboxes/{id}/commands/{command}/stdin");
    let half = SIZE / 2;
    for (offset, end, eof) in [(0, half, false), (half - 1000, SIZE, true)] {
        let part = input[offset..end].to_vec();
        let path = format!("{route}?offset={offset}&eof={eof}");
        api.request("POST", &path).body(part).send().await?.error_for_status()?;
    }
    assert_eq!(api.wait(&id, &command).await?, 0);
    let records = api.logs(&id, &command).await?;
    let out = records.iter().find(|r| r.stream == "stdout").unwrap().data.clone();
    let mut local = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(&mut local.stdin.take().unwrap(), &input)?;
    assert_eq!(out.as_bytes(), local.wait_with_output()?.stdout);
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_says_who_asked() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let id = api.create("kill").await?;
    let command = api.bash(&id, "sleep 600").await?;
    let kill = format!("/v1/sandboxes/{id}/commands/{command}:kill");
    assert_eq!(api.call("POST", &kill, None).await?, json!({ "ok": true }));
    assert_eq!(api.wait(&id, &command).await?, 143);
    assert_eq!(api.status(&id, &command).await?["ending"]["kind"], "killed");
    assert_eq!(api.call("POST", &kill, None).await?, json!({ "ok": true }), "idempotent");
    daemon.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn running_out_of_memory_is_named_and_the_sandbox_lives() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let daemon = TestDaemon::start(SANDBANK).await?;
    let api = daemon.api()?;
    let body = json!({
        "sessionKey": "oom", "resources": { "memoryMb": 256 }, "network": { "mode": "none" }
    });
    let id = api.create_with(body).await?;
    let hog = json!({ "argv": ["python3", "-c", "x = bytearray(600 * 1024 * 1024)"] });
    assert_eq!(ending(&api, &id, hog).await?, json!({ "kind": "oom_killed" }));
    assert_eq!(api.run(&id, "echo fine").await?.1, "fine\n");
    daemon.finish().await
}
