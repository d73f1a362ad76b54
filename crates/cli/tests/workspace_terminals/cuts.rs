//! Fifty terminals, a thousand cuts, and a daemon that is killed in between.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use sandbank_test_support::{Pty, TestDaemon, skip_unless_root, wait_for};

use super::{ALONE, SANDBANK};

const TERMINALS: u32 = 50;
const CUTS: u32 = 20;
const KILLS: u32 = 4;

/// How long whoever was cut off may take to be back, and how long it is waited for.
const WINDOW: Duration = Duration::from_secs(10);

/// Writes numbered lines until it is told to end; a character of each is written in two parts. What
/// a read has of a line when its time is up is kept.
const SCRIPT: &str = "stty -echo -onlcr; i=0; line=; while ! { read -r -t 0.1 part; r=$?; \
                      line=$line$part; [ $r = 0 ]; }; do i=$((i+1)); printf \"$i:\\xe2\\x82\"; \
                      printf '\\xac\\n'; done; echo \"$line $i\"; exit 9";

const ABANDONED: &str = "ffffffff-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_cuts_and_four_kill_9_lose_no_byte_of_fifty_terminals() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let _alone = ALONE.lock().await;
    let script = format!("bash,-c,{SCRIPT}");
    let settings = [
        ("WORKSPACE_MODE", "sandbox"),
        ("SANDBANK_PTY_SHELL_COMMAND", script.as_str()),
        ("SANDBANK_PTY_MAX_SESSIONS", "51"),
        ("SANDBANK_PTY_WINDOW_SECONDS", "10"),
        ("SANDBANK_WORKSPACE_CONNECTS_PER_SECOND", "0"),
    ];
    let mut daemon = TestDaemon::start_with(SANDBANK, &settings).await?;
    let storm = Arc::new(Storm {
        url: daemon.url(),
        token: daemon.token()?,
        cuts: AtomicU32::new(0),
        up_since: Mutex::new(Some(Instant::now())),
        is_over: AtomicBool::new(false),
    });
    let mut abandoned = storm.open(ABANDONED, "").await?;
    abandoned.said("output").await?;
    drop(abandoned);
    let viewers: Vec<_> = (0..TERMINALS)
        .map(|n| cut_off_again_and_again(n, storm.clone()))
        .map(tokio::spawn)
        .collect();
    for kill in 1..=KILLS {
        let part = kill * TERMINALS * CUTS / (KILLS + 1);
        let enough = || async { storm.cuts.load(Ordering::Relaxed) >= part };
        wait_for("the next part of the cuts", Duration::from_secs(60), enough).await?;
        *storm.up_since.lock().unwrap() = None;
        daemon.kill_9()?;
        daemon.launch().await?;
        *storm.up_since.lock().unwrap() = Some(Instant::now());
    }
    storm.is_over.store(true, Ordering::Relaxed);
    let (mut cuts, mut longest) = (0, Duration::ZERO);
    for viewer in viewers {
        let (its_cuts, its_longest) = viewer.await??;
        cuts += its_cuts;
        longest = longest.max(its_longest);
    }
    assert!(cuts >= TERMINALS * CUTS, "{cuts}");
    println!("{cuts} cuts, {KILLS} kills; the longest way back took {longest:?}");
    assert!(longest < WINDOW, "{longest:?}");
    // The one that nobody came back for.
    let api = daemon.api()?;
    let is_given_up = || async {
        let list = api.call("GET", "/api/sessions", None).await;
        list.is_ok_and(|list| !list.to_string().contains(ABANDONED))
    };
    wait_for("the abandoned terminal is given up", 4 * WINDOW, is_given_up).await?;
    let mut late = storm.open(ABANDONED, "&resume=1").await?;
    assert_eq!(late.frame().await?["type"], "session_not_found");
    assert_eq!(late.closed().await?.0, 4001);
    daemon.finish().await
}

struct Storm {
    url: String,
    token: String,
    cuts: AtomicU32,
    /// None: no daemon is there.
    up_since: Mutex<Option<Instant>>,
    /// The daemon is killed no more.
    is_over: AtomicBool,
}

impl Storm {
    async fn open(&self, id: &str, more: &str) -> anyhow::Result<Pty> {
        Pty::open(&self.url, &self.token, &format!("session_id={id}{more}")).await
    }

    /// Tries until the session is there again, as a client does. One that is told not to be there
    /// never is. How long it took with a daemon there, beside it.
    async fn come_back(&self, id: &str, more: &str) -> anyhow::Result<(Pty, Duration)> {
        let begun = Instant::now();
        let took = || {
            let up = self.up_since.lock().unwrap().map(|since| since.elapsed());
            begun.elapsed().min(up.unwrap_or_default())
        };
        loop {
            let opened = self.open(id, more).await;
            anyhow::ensure!(took() < WINDOW, "not back in time: {id}{more}");
            if let Ok(mut pty) = opened
                && let Ok(first) = pty.frame().await
            {
                match first["type"].as_str() {
                    Some("session") => return Ok((pty, took())),
                    Some("session_not_found") => anyhow::bail!("lost: {id}{more}"),
                    _ => {}
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// How often it was cut off, and the longest way back.
async fn cut_off_again_and_again(n: u32, storm: Arc<Storm>) -> anyhow::Result<(u32, Duration)> {
    let id = format!("{n:08x}-0000-4000-8000-000000000000");
    let (mut pty, _) = storm.come_back(&id, "&after=0").await?;
    let (mut seen, mut seq, mut cuts, mut longest) = (String::new(), 0, 0, Duration::ZERO);
    while cuts < CUTS || !storm.is_over.load(Ordering::Relaxed) {
        // Each for another while.
        for _ in 0..(n + cuts) % 7 + 3 {
            if pty.frame().await.is_err() {
                break;
            }
        }
        seen.push_str(&pty.output);
        seq = pty.seq.max(seq);
        drop(pty);
        cuts += 1;
        storm.cuts.fetch_add(1, Ordering::Relaxed);
        let took;
        (pty, took) = storm.come_back(&id, &format!("&after={seq}&resume=1")).await?;
        longest = longest.max(took);
    }
    pty.input("end\n").await?;
    let code = pty.said("exit").await?["code"].clone();
    anyhow::ensure!(code == 9, "terminal {n} ended with {code}");
    seen.push_str(&pty.output);
    let count = seen.rsplit_once(' ').and_then(|(_, count)| count.trim().parse().ok());
    let count: u32 = count.with_context(|| format!("terminal {n} did not end: {seen:?}"))?;
    let mut written: String = (1..=count).map(|i| format!("{i}:\u{20ac}\n")).collect();
    written.push_str(&format!("end {count}\n"));
    anyhow::ensure!(seen == written, "terminal {n} saw other than what was written: {seen:?}");
    Ok((cuts, longest))
}
