//! Creating and destroying as fast as it goes, with several callers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Run, turns};
use crate::api::Network;
use crate::peers::{NAMES, PROCESS, Peer};
use crate::report::{Goal, SUBJECT, Section, Unit};
use crate::samples::Samples;

const CALLERS: [usize; 3] = [1, 4, 8];
const GOAL_PER_SECOND: f64 = 250.0;
const READY: &str = "create to ready";

const METHOD: &str = "Each caller makes a sandbox, has its runner answer, destroys it, and begins \
    again; rates count whole cycles. The peers are made, ready and ended as in the part before; Docker makes \
    fewer in a turn.";

/// A slow peer makes this part of what the others make in a turn.
const SLOW_SHARE: usize = 5;

#[derive(Clone, Copy)]
struct Contender<'a> {
    /// None is Sandbank.
    peer: Option<Peer<'a>>,
    callers: usize,
}

pub(super) async fn measure(run: &Run<'_>) -> anyhow::Result<Section> {
    let mut contenders = Vec::new();
    for callers in CALLERS {
        contenders.push(Contender { peer: None, callers });
        let peers = run.peers.all().into_iter().filter(|peer| peer.name() != PROCESS);
        contenders.extend(peers.map(|peer| Contender { peer: Some(peer), callers }));
    }
    let rounds = 1 + run.scale.long_rounds;
    run.progress.begin("throughput", rounds * contenders.len());
    let mut samples = Samples::default();
    for round in 0..rounds {
        for contender in turns(&contenders, round.abs_diff(1)) {
            let begin = Instant::now();
            let times = slice(run, *contender).await?;
            let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
            run.progress.step();
            if round == 0 {
                continue;
            }
            let who = contender.peer.map_or(SUBJECT, |peer| peer.name());
            samples.add(&cycle(contender.callers), who, Unit::PerSecond, rate);
            for took in times {
                samples.add_time(&latency(contender.callers), who, took);
            }
        }
    }
    let mut section = Section::new("Throughput", METHOD);
    section.series = samples.into_series();
    let best = CALLERS.iter().filter_map(|callers| section.median(&cycle(*callers), SUBJECT));
    if let Some(value) = best.max_by(f64::total_cmp) {
        let what = "create and destroy: sandbank, best of these";
        section.figure(what, value, Unit::PerSecond, Goal::AtLeast(GOAL_PER_SECOND));
    }
    for callers in CALLERS {
        for peer in NAMES {
            section.compare(&cycle(callers), SUBJECT, peer, None);
        }
    }
    Ok(section)
}

fn cycle(callers: usize) -> String {
    format!("create and destroy, callers: {callers}")
}

fn latency(callers: usize) -> String {
    format!("{READY}, callers: {callers}")
}

/// Makes and destroys `slice` sandboxes and says how long each took to be ready.
async fn slice(run: &Run<'_>, contender: Contender<'_>) -> anyhow::Result<Vec<Duration>> {
    let share = if contender.peer.is_some_and(|peer| peer.is_slow()) { SLOW_SHARE } else { 1 };
    let count = (run.scale.slice / share).max(contender.callers);
    let begun = AtomicUsize::new(0);
    let caller = || async {
        let mut times = Vec::new();
        while begun.fetch_add(1, Ordering::Relaxed) < count {
            times.push(once(run, contender.peer).await?);
        }
        anyhow::Ok(times)
    };
    let callers: Vec<_> = (0..contender.callers).map(|_| caller()).collect();
    let mut times = Vec::new();
    for caller in futures_util::future::join_all(callers).await {
        times.extend(caller?);
    }
    Ok(times)
}

async fn once(run: &Run<'_>, peer: Option<Peer<'_>>) -> anyhow::Result<Duration> {
    if let Some(peer) = peer {
        return Ok(peer.cycle().await?.ready);
    }
    let begin = Instant::now();
    let id = run.api().create_ready(Network::None).await?;
    let took = begin.elapsed();
    run.api().destroy(&id).await?;
    Ok(took)
}
