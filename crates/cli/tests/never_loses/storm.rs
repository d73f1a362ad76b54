//! The storm: the daemon and its spawner are killed at random moments while clients create, run,
//! write, publish and delete. Whatever a client was told must hold; whatever it was not told, it
//! asks for again, by key or id, and gets once.
//!
//! `SANDBANK_TORTURE=full` kills 200 times instead of a few.

mod client;
mod model;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sandbank_test_support::{Seeded, TestDaemon, is_over_docker, skip_unless_root};

use self::client::Client;
use self::model::Model;
use crate::SANDBANK;
use crate::objects::agree;

const CLIENTS: u64 = 5;
const KILLS: u64 = 40;
const ALL_KILLS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn random_kills_under_load_lose_nothing_acknowledged() -> anyhow::Result<()> {
    if skip_unless_root() {
        return Ok(());
    }
    let full = std::env::var("SANDBANK_TORTURE").is_ok_and(|value| value == "full");
    let seed = Seeded::announce("storm");
    let mut daemon = TestDaemon::start_with(SANDBANK, &[("SANDBANK_POOL_SIZE", "2")]).await?;
    let over = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let client = Client::new(number, daemon.api()?, seed.branch(number));
        clients.spawn(client.work(over.clone()));
    }
    let tally = kill_at_random(&mut daemon, &seed, if full { ALL_KILLS } else { KILLS }).await?;
    over.store(true, Ordering::SeqCst);
    let mut known = Model::default();
    while let Some(done) = clients.join_next().await {
        known.merge(done?.with_context(|| daemon.log_tail())?);
    }
    println!("storm: {tally}; {known}");
    ensure!(known.commands > 0 && !known.deleted.is_empty(), "nothing was at stake: {known}");
    let api = daemon.api()?;
    ensure!(agree(&daemon, &api).await? == known.living(), "other sandboxes than were promised");
    known.verify(&api).await?;
    daemon.finish().await
}

/// Daemon three times out of four, else the spawner, where there is one. Says how often which.
async fn kill_at_random(
    daemon: &mut TestDaemon,
    seed: &Seeded,
    kills: u64,
) -> anyhow::Result<String> {
    let mut random = seed.branch(CLIENTS);
    // Long enough for some creates to be done, which in Docker take their time.
    let longest = if is_over_docker() { 4_000 } else { 900 };
    let (mut daemons, mut spawners) = (0, 0);
    for _ in 0..kills {
        // Not a wait for something: the moment of the kill is what varies.
        tokio::time::sleep(random.millis(20, longest)).await;
        match spawner(daemon).filter(|_| random.below(4) == 0) {
            Some(spawner) => {
                let _ = kill_process(spawner, Signal::KILL);
                spawners += 1;
            }
            None => {
                daemon.kill_9()?;
                daemon.launch().await?;
                daemons += 1;
            }
        }
    }
    Ok(format!("{daemons} daemons and {spawners} spawners killed"))
}

fn spawner(daemon: &TestDaemon) -> Option<Pid> {
    let parent = daemon.pid()?;
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    // Any thread of the daemon may have started it.
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let of_threads =
        threads.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    let pids = children.into_iter().chain(of_threads).collect::<Vec<_>>().join(" ");
    pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).find(|pid| {
        let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
        std::fs::read_to_string(path).is_ok_and(|line| line.contains("__spawner"))
    })
}
