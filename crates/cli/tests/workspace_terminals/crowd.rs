//! A hundred terminals beside a flood, readers that do not read, and peers that have vanished.

use std::fs;
use std::time::Duration;

use futures_util::future::try_join_all;
use sandbank_test_support::{Api, Pty, TestDaemon, skip_unless_root, wait_for};
use serde_json::Value;

use super::mute::Mute;
use super::{ALONE, SANDBANK};

const TERMINALS: u32 = 100;
const SLOW: u32 = 4;
const VANISHED: u32 = 8;
const FLOOD: &str = "ffffffff-0000-4000-8000-000000000000";

/// A ping, the time for its answer, the time to take the rest, and a busy machine.
const LET_GO: Duration = Duration::from_secs(90);

/// Far more than is kept for anybody, and far less than the flood.
const MAX_GROWTH_BYTES: u64 = 64 << 20;

/// Takes nothing, or does not answer.
const TIMED_OUT: u16 = 4007;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_terminals_are_served_beside_a_flood_slow_readers_and_vanished_peers()
-> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let _alone = ALONE.lock().await;
    let settings = [
        ("WORKSPACE_MODE", "sandbox"),
        ("SANDBANK_PTY_SHELL_COMMAND", "bash,--norc,--noprofile"),
        ("SANDBANK_PTY_MAX_SESSIONS", "200"),
        ("SANDBANK_PTY_WINDOW_SECONDS", "600"),
    ];
    let daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let (url, token) = (&daemon.url(), &daemon.token()?);
    let mut crowd = try_join_all((0..TERMINALS).map(|n| async move {
        let mut pty = Pty::open(url, token, &format!("session_id={}", id(n))).await?;
        answer(&mut pty, "first").await?;
        anyhow::Ok(pty)
    }))
    .await?;
    let before = resident_bytes(&daemon)?;

    let flood = format!("session_id={FLOOD}");
    let mut source = Pty::open(url, token, &flood).await?;
    source.input("yes\n").await?;
    source.read_until("y\r\ny\r\n").await?;
    drop(source);
    let mut slow = Vec::new();
    for n in 0..SLOW {
        // One kind is painted the screen when it is behind, the other is shown everything.
        let query = if n % 2 == 0 { flood.clone() } else { format!("{flood}&after=0") };
        slow.push((
            format!("slow-{n}"),
            Mute::join(url, token, &query, &format!("slow-{n}")).await?,
        ));
    }
    let mut vanished = Vec::new();
    for n in 0..VANISHED {
        let query = format!("session_id={}", id(TERMINALS + n));
        vanished.push(Mute::join(url, token, &query, &format!("vanished-{n}")).await?);
    }
    let mut deaf = Mute::join(url, token, &format!("session_id={}", id(TERMINALS)), "deaf").await?;
    let deaf = tokio::spawn(async move { deaf.closed().await });

    let mut grown = 0;
    let reading: Vec<_> = slow
        .into_iter()
        .map(|(name, mut mute)| {
            let log = daemon.log_path();
            tokio::spawn(async move {
                let is_let_go = || async { is_let_go(&fs::read_to_string(&log).unwrap(), &name) };
                wait_for("a slow reader is let go", LET_GO, is_let_go).await?;
                // It would not hear why, if it did not read now.
                mute.closed().await
            })
        })
        .collect();
    let mut round = 0;
    while !reading.iter().all(tokio::task::JoinHandle::is_finished) {
        round += 1;
        for pty in crowd.iter_mut().skip(round % 10).step_by(10) {
            answer(pty, &format!("round-{round}")).await?;
        }
        grown = resident_bytes(&daemon)?.saturating_sub(before).max(grown);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for reader in reading {
        assert_eq!(reader.await??, TIMED_OUT, "a slow reader");
    }
    assert_eq!(deaf.await??, TIMED_OUT, "one that answers no ping");
    let api = daemon.api()?;
    let flooded = written(&api).await?;
    println!("{round} rounds; {} MiB of flood, {} MiB more", flooded >> 20, grown >> 20);
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes more");
    let unread = flooded * u64::from(SLOW);
    assert!(unread > 2 * MAX_GROWTH_BYTES, "{unread} bytes that nobody read would fit");

    let is_freed = || async {
        let Ok(list) = api.call("GET", "/api/sessions", None).await else { return false };
        let places = (TERMINALS..TERMINALS + VANISHED).map(|n| clients(&list, &id(n)));
        places.chain([clients(&list, FLOOD)]).all(|clients| clients == Some(0))
    };
    wait_for("the places of those that vanished are free", LET_GO, is_freed).await?;
    let list = api.call("GET", "/api/sessions", None).await?;
    assert!((0..TERMINALS).all(|n| clients(&list, &id(n)) == Some(1)), "{list}");
    // The flood goes on, and whoever comes to it ends it.
    let mut back = Pty::open(url, token, &flood).await?;
    back.said("history").await?;
    back.input("\u{3}").await?;
    answer(&mut back, "quiet").await?;
    for pty in &mut crowd {
        answer(pty, "last").await?;
    }
    drop(vanished);
    daemon.finish().await
}

/// By the terminal that has written the most.
async fn written(api: &Api) -> anyhow::Result<u64> {
    let sandbox = api.sandboxes().await?[0]["id"].as_str().unwrap().to_owned();
    let list = api.call("GET", &format!("/v1/sandboxes/{sandbox}/commands"), None).await?;
    let commands = list["commands"].as_array().unwrap().iter();
    Ok(commands.filter_map(|command| command["stdoutBytes"].as_u64()).max().unwrap_or_default())
}

fn id(n: u32) -> String {
    format!("{n:08x}-0000-4000-8000-000000000000")
}

async fn answer(pty: &mut Pty, word: &str) -> anyhow::Result<()> {
    pty.input(&format!("echo {word}''-heard\n")).await?;
    pty.read_until(&format!("{word}-heard")).await
}

fn clients(list: &Value, id: &str) -> Option<u64> {
    let sessions = list["sessions"].as_array()?;
    sessions.iter().find(|session| session["id"] == id)?["clients"].as_u64()
}

fn is_let_go(log: &str, name: &str) -> bool {
    log.lines().any(|line| line.contains("a viewer is let go") && line.contains(name))
}

fn resident_bytes(daemon: &TestDaemon) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid().unwrap()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
