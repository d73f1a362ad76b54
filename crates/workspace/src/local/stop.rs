//! The end of a runner and of everything it started. It adopts orphans, so all of that is below it.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};

use rustix::process::Signal;
use tokio::time::Instant;

use super::process::{self, Process};
use crate::limits::{KILL_PATIENCE, KILL_POLL, KILL_ROUNDS};

/// Does nothing to a process that only has the number. `reap` is for whoever is its parent.
pub(super) async fn end(runner: &Process, reap: impl Fn()) -> io::Result<()> {
    if !runner.is_alive() {
        return Ok(());
    }
    let mut stopped = HashSet::new();
    for _ in 0..KILL_ROUNDS {
        // Stopped first: what forks faster than it is killed would be missed for ever.
        let found = below(runner.pid);
        let fresh = found.iter().filter(|process| stopped.insert(process.pid)).count();
        let signal = if fresh == 0 { Signal::KILL } else { Signal::STOP };
        found.iter().for_each(|process| drop(process.signal(signal)));
        if fresh == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    runner.signal(Signal::KILL)?;
    let deadline = Instant::now() + KILL_PATIENCE;
    while runner.is_alive() {
        if Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        tokio::time::sleep(KILL_POLL).await;
        reap();
    }
    Ok(())
}

/// Everything below a process, as it is now.
fn below(root: i32) -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in pids {
        if let Some(stat) = process::stat(pid).filter(|stat| !stat.zombie) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(pid) = open.pop() {
        let next = children.remove(&pid).unwrap_or_default();
        found.extend(next.iter().filter_map(|pid| Process::of(*pid).ok()));
        open.extend(next);
    }
    found
}
